"""Judging a task that is one call: one turn, one valid call, the right value."""

from dataclasses import dataclass

from toolbench.engine.events import ANSWERED_ENDS, EndReason, LoopResult, ToolResult, TurnRecord
from toolbench.engine.types import JsonObject
from toolbench.evals.expected_calls import ExpectedCalls, ExpectedToolCall
from toolbench.evals.judging import verdict
from toolbench.evals.judging.diagnosis import Problem, locate_problem
from toolbench.evals.judging.messages import render_short
from toolbench.evals.record_counts import CALLS_PATH
from toolbench.evals.types import Check, Instance, Verdict

ONE_TURN_LAYER: JsonObject = {"max_turns": 1}
RULE = "The first answer makes one valid call of {tool}, and its {field} is {wanted}. The run ends after that call."


@dataclass(frozen=True, slots=True)
class ExpectedSingleCall:
    """The right call: `field` of the arguments of `tool` is `value`.

    With `loose`, case and outer spaces are ignored.
    """

    tool: str
    field: str
    value: str
    loose: bool = False

    def is_match(self, arguments: JsonObject | None) -> bool:
        """Return whether the arguments have the right value."""
        given = (arguments or {}).get(self.field)
        if self.loose and isinstance(given, str):
            return given.strip().casefold() == self.value.casefold()
        return bool(given == self.value)

    @property
    def build_expected_calls(self) -> ExpectedCalls:
        """Return the call as expected calls."""
        return ExpectedCalls(True, (ExpectedToolCall(self.tool, self.is_match),))


def judge(instance: Instance, ended: LoopResult, wanted: ExpectedSingleCall) -> Verdict:
    """Return the verdict on the first answer; running out of the one turn is a good end.

    The case study has no such scenario, so its rule is not applied.
    """
    first = next((record for record in ended.turns if record.answer), None)
    results = first.results if first else ()
    valid = len(results) == 1 and _is_valid(results[0], wanted.tool)
    right = valid and wanted.is_match(results[0].arguments)
    checks = (
        Check(f"one valid call of {wanted.tool}", valid, "" if valid else f"calls made: {len(results)}"),
        Check(f"{wanted.field} is {render_short(wanted.value)}", right),
    )
    case = verdict.CheckedResult(
        instance=instance,
        ended=ended,
        rule=RULE.format(tool=wanted.tool, field=wanted.field, wanted=render_short(wanted.value)),
        checks=checks,
        case_study_checks=None,
        fallback_problem=_find_problem(first, wanted),
        good_ends=ANSWERED_ENDS | {EndReason.MAX_TURNS_EXCEEDED},
    )
    return verdict.judge(case)


def _is_valid(result: ToolResult, tool: str) -> bool:
    return result.envelope.ok and result.envelope.tool_name == tool and not result.schema_errors


def _find_problem(first: TurnRecord | None, wanted: ExpectedSingleCall) -> Problem:
    if first is None or not first.results:
        return Problem(
            "no_tool_calls", locate_problem(0, path=CALLS_PATH, what="the answer is text and calls no tool.")
        )
    if len(first.results) > 1:
        what = f"{len(first.results)} calls were made; one was asked for."
        return Problem("too_many_calls", locate_problem(first.turn, path=CALLS_PATH, what=what))
    result = first.results[0]
    if result.envelope.tool_name != wanted.tool:
        what = f"{result.envelope.tool_name} was called; the task needs {wanted.tool}."
        return Problem("wrong_arguments", locate_problem(first.turn, call=0, what=what))
    given = render_short((result.arguments or {}).get(wanted.field))
    path = f"$.{wanted.field}"
    what = f"{path} is {given}; {render_short(wanted.value)} was asked for."
    return Problem("wrong_arguments", locate_problem(first.turn, call=0, path=path, what=what))
