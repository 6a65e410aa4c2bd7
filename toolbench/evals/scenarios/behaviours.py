"""Behaviours after which scenarios are named, and whether they occurred in a record."""

from collections.abc import Callable
from dataclasses import dataclass

from toolbench.engine.events import LoopResult, TurnRecord
from toolbench.engine.types import JsonObject
from toolbench.evals.record_counts import (
    CUT_FINISH_REASON,
    RecordedCall,
    count_calls,
    has_error,
    iter_calls,
    list_error_codes,
)

ARGUMENTS_TOO_LARGE = "ARGUMENTS_TOO_LARGE"
OUTPUT_TOO_LARGE = "TOOL_OUTPUT_TOO_LARGE"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The behaviour that a scenario provokes.

    Attributes:
        has_occurred: Returns whether it occurred; None if the scenario names no behaviour.
        required_for_pass: Whether the task fails without it (with `failure_class` and the sentence `missing`).
        required_by_case_study: Whether the case study's rule fails without it.
        avoidable: Whether it is an error to recover from, so that a trial without it still passes.
        expected: Error codes that belong to it.
        provoked: The causes that it brings about in a trial that passes.
        together: The number of calls that must be in one message.
        counts: Returns further counts of the record.
    """

    name: str = ""
    has_occurred: Callable[[LoopResult], bool] | None = None
    rule: str = ""
    required_for_pass: bool = False
    required_by_case_study: bool = False
    avoidable: bool = False
    expected: tuple[str, ...] = ()
    provoked: tuple[str, ...] = ()
    together: int = 1
    failure_class: str = "wrong_state"
    missing: str = ""
    counts: Callable[[LoopResult], JsonObject] | None = None


def has_mixed_turn(ended: LoopResult) -> bool:
    """Return whether a turn has a successful state_get and a failed state_patch."""
    return any(
        _has_result(record, "state_get", ok=True) and _has_result(record, "state_patch", ok=False)
        for record in ended.turns
    )


def has_parallel_turn(ended: LoopResult) -> bool:
    """Return whether a turn has two calls or more."""
    return any(count_calls(record) >= 2 for record in ended.turns)


def is_id_omitted(ended: LoopResult) -> bool:
    """Return whether there are calls of state tools and none of them passes a workspace_id."""
    arguments = [call.result.arguments for call in iter_calls(ended) if call.tool.startswith("state_")]
    return bool(arguments) and all(not (given or {}).get("workspace_id") for given in arguments)


def has_refused_ops(ended: LoopResult) -> bool:
    """Return whether a state_patch was refused because `ops` is not an array."""
    return any(_is_ops_error(call) for call in iter_calls(ended))


def count_long_arguments(ended: LoopResult) -> JsonObject:
    """Return what happened to the long arguments, each 0 or 1: refused for size, truncated, or never tried."""
    met = has_error(ended, ARGUMENTS_TOO_LARGE)
    cut = not met and any(_is_cut_off(record) for record in ended.turns)
    return {"limit_met": int(met), "cut_by_length": int(cut), "never_tried": int(not met and not cut)}


def _has_result(record: TurnRecord, tool: str, *, ok: bool) -> bool:
    return any(result.envelope.tool_name == tool and result.envelope.ok is ok for result in record.results)


def _is_ops_error(call: RecordedCall) -> bool:
    if call.tool != "state_patch" or call.ok:
        return False
    if any(error.path == "$.ops" and error.kind == "type" for error in call.result.schema_errors):
        return True
    given = (call.result.arguments or {}).get("ops")
    return "ARGUMENT_ERROR" in list_error_codes(call.result) and given is not None and not isinstance(given, list)


def _is_cut_off(record: TurnRecord) -> bool:
    broken = not record.results or any(result.parse_status == "invalid_json" for result in record.results)
    return record.answer is not None and record.answer.finish_reason == CUT_FINISH_REASON and broken


_LONG_ARGUMENTS = Behaviour(
    name="ARGUMENTS_TOO_LARGE occurred",
    has_occurred=lambda ended: has_error(ended, ARGUMENTS_TOO_LARGE),
    avoidable=True,
    expected=(ARGUMENTS_TOO_LARGE,),
    provoked=("arguments_too_large",),
    counts=count_long_arguments,
)

BEHAVIOURS = {
    "mixed_turn": Behaviour(
        name="one message mixed a good read with a failed change",
        has_occurred=has_mixed_turn,
        required_by_case_study=True,
        avoidable=True,
        expected=("ARGUMENT_ERROR",),
        provoked=("arguments_refused",),
        rule=" A model that never makes the wrong call on purpose has avoided the recovery and passes.",
    ),
    "id_left_out": Behaviour(name="no call passed a workspace_id", has_occurred=is_id_omitted),
    "ops_refused": Behaviour(
        name="a wrong type of ops was refused",
        has_occurred=has_refused_ops,
        provoked=("schema_type",),
        avoidable=True,
        rule=" Sending an array at once avoids the error and passes.",
    ),
    "parallel_turn": Behaviour(
        name="two calls came in one message",
        has_occurred=has_parallel_turn,
        required_for_pass=True,
        required_by_case_study=True,
        together=2,
        failure_class="not_parallel",
        missing="this message and all later ones hold at most one call; two were asked for.",
        rule=" Two calls must come in one message.",
    ),
    "arguments_too_large": _LONG_ARGUMENTS,
    "output_too_large": Behaviour(
        name="TOOL_OUTPUT_TOO_LARGE occurred",
        has_occurred=lambda ended: has_error(ended, OUTPUT_TOO_LARGE),
        required_by_case_study=True,
        avoidable=True,
        expected=(OUTPUT_TOO_LARGE,),
        provoked=("tool_output_too_large",),
        rule=" A narrow select that never overflows has avoided the error and passes.",
    ),
}
