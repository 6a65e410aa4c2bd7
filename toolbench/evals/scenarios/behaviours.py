"""The behaviours that scenarios provoke, with functions that detect them in a finished run."""

from collections.abc import Callable
from dataclasses import dataclass

from toolbench.engine.events import LoopResult, TurnRecord
from toolbench.engine.types import JsonObject
from toolbench.evals.record_counts import (
    TRUNCATED_FINISH_REASON,
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
    """A behaviour that a scenario provokes.

    Attributes:
        name: The text of the check for the behaviour; "" for a scenario without a behaviour.
        has_occurred: Returns whether the behaviour occurred; None for a scenario without a behaviour.
        rule: Sentences that are added to the rule for a pass, with a leading space.
        required_for_pass: Whether a trial without the behaviour fails.
        required_by_case_study: Whether a trial without the behaviour fails by the case study's rule.
        avoidable: Whether the behaviour is an error that a model may avoid and still pass.
        expected_codes: Error codes of calls that fail because of the behaviour.
        provoked_causes: Codes of causes that the behaviour leads to in a trial that passes, one entry per step with the
            cause.
        parallel_calls: The number of calls that must be in one message.
        failure_class: The failure class of a trial that fails only because the behaviour did not occur.
        missing: The sentence about the missing behaviour in that failure.
        counts: Returns further counts of the run by name; None for none.
    """

    name: str = ""
    has_occurred: Callable[[LoopResult], bool] | None = None
    rule: str = ""
    required_for_pass: bool = False
    required_by_case_study: bool = False
    avoidable: bool = False
    expected_codes: tuple[str, ...] = ()
    provoked_causes: tuple[str, ...] = ()
    parallel_calls: int = 1
    failure_class: str = "wrong_state"
    missing: str = ""
    counts: Callable[[LoopResult], JsonObject] | None = None


def has_mixed_turn(loop_result: LoopResult) -> bool:
    """Return whether a turn has a successful state_get and a failed state_patch."""
    return any(
        _has_result(record, "state_get", ok=True) and _has_result(record, "state_patch", ok=False)
        for record in loop_result.turns
    )


def has_parallel_turn(loop_result: LoopResult) -> bool:
    """Return whether a turn has two calls or more."""
    return any(count_calls(record) >= 2 for record in loop_result.turns)


def is_id_omitted(loop_result: LoopResult) -> bool:
    """Return whether there are calls of state tools and none of them passes a workspace_id."""
    state_calls = [call for call in iter_calls(loop_result) if call.tool.startswith("state_")]
    return bool(state_calls) and not any((call.result.arguments or {}).get("workspace_id") for call in state_calls)


def has_refused_ops(loop_result: LoopResult) -> bool:
    """Return whether a state_patch was refused because `ops` is not an array."""
    return any(_is_ops_error(call) for call in iter_calls(loop_result))


def count_long_arguments(loop_result: LoopResult) -> JsonObject:
    """Return what happened to the long arguments, as three counts; one of them is 1, the others are 0.

    `limit_met`: the arguments of a call were refused for their size; `cut_by_length`: the token limit truncated an
    answer before its calls could be read; `never_tried`: neither.
    """
    is_refused = has_error(loop_result, ARGUMENTS_TOO_LARGE)
    is_truncated = not is_refused and any(_is_truncated(record) for record in loop_result.turns)
    return {
        "limit_met": int(is_refused),
        "cut_by_length": int(is_truncated),
        "never_tried": int(not is_refused and not is_truncated),
    }


def _has_result(record: TurnRecord, tool: str, *, ok: bool) -> bool:
    return any(result.envelope.tool_name == tool and result.envelope.ok is ok for result in record.results)


def _is_ops_error(call: RecordedCall) -> bool:
    if call.tool != "state_patch" or call.ok:
        return False
    if any(error.path == "$.ops" and error.kind == "type" for error in call.result.schema_errors):
        return True
    ops = (call.result.arguments or {}).get("ops")
    return "ARGUMENT_ERROR" in list_error_codes(call.result) and ops is not None and not isinstance(ops, list)


def _is_truncated(record: TurnRecord) -> bool:
    is_unreadable = not record.results or any(result.parse_status == "invalid_json" for result in record.results)
    return record.answer is not None and record.answer.finish_reason == TRUNCATED_FINISH_REASON and is_unreadable


BEHAVIOURS = {
    "mixed_turn": Behaviour(
        name="one message mixed a good read with a failed change",
        has_occurred=has_mixed_turn,
        required_by_case_study=True,
        avoidable=True,
        expected_codes=("ARGUMENT_ERROR",),
        provoked_causes=("arguments_refused",),
        rule=" A model that never makes the wrong call on purpose has avoided the recovery and passes.",
    ),
    "id_left_out": Behaviour(name="no call passed a workspace_id", has_occurred=is_id_omitted),
    "ops_refused": Behaviour(
        name="a wrong type of ops was refused",
        has_occurred=has_refused_ops,
        provoked_causes=("schema_type",),
        avoidable=True,
        rule=" Sending an array at once avoids the error and passes.",
    ),
    "parallel_turn": Behaviour(
        name="two calls came in one message",
        has_occurred=has_parallel_turn,
        required_for_pass=True,
        required_by_case_study=True,
        parallel_calls=2,
        failure_class="not_parallel",
        missing="this message and all later ones have at most one call; the task needs two in one message.",
        rule=" Two calls must come in one message.",
    ),
    "arguments_too_large": Behaviour(
        name="ARGUMENTS_TOO_LARGE occurred",
        has_occurred=lambda loop_result: has_error(loop_result, ARGUMENTS_TOO_LARGE),
        avoidable=True,
        expected_codes=(ARGUMENTS_TOO_LARGE,),
        provoked_causes=("arguments_too_large",),
        counts=count_long_arguments,
    ),
    "output_too_large": Behaviour(
        name="TOOL_OUTPUT_TOO_LARGE occurred",
        has_occurred=lambda loop_result: has_error(loop_result, OUTPUT_TOO_LARGE),
        required_by_case_study=True,
        avoidable=True,
        expected_codes=(OUTPUT_TOO_LARGE,),
        provoked_causes=("tool_output_too_large",),
        rule=" A narrow select that never overflows has avoided the error and passes.",
    ),
}
