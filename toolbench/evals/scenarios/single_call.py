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

    def list_wrong_paths(self, arguments: JsonObject) -> tuple[str, ...]:
        """Return the path of the field unless it has the right value."""
        return () if self.is_match(arguments) else (f"$.{self.field}",)

    def to_expected_calls(self) -> ExpectedCalls:
        """Return the call as expected calls."""
        call = ExpectedToolCall(self.tool, self.is_match, self.list_wrong_paths, {self.field: self.value})
        return ExpectedCalls(True, (call,))


def judge(instance: Instance, ended: LoopResult, expected: ExpectedSingleCall) -> Verdict:
    """Return the verdict on the first answer; running out of the one turn is a good end.

    The case study has no such scenario, so its rule is not applied.
    """
    first = next((record for record in ended.turns if record.answer), None)
    results = first.results if first else ()
    valid = len(results) == 1 and _is_valid(results[0], expected.tool)
    right = valid and expected.is_match(results[0].arguments)
    checks = (
        Check(f"one valid call of {expected.tool}", valid, "" if valid else f"calls made: {len(results)}"),
        Check(f"{expected.field} is {render_short(expected.value)}", right),
    )
    case = verdict.CheckedResult(
        instance=instance,
        ended=ended,
        rule=RULE.format(tool=expected.tool, field=expected.field, wanted=render_short(expected.value)),
        checks=checks,
        case_study_checks=None,
        fallback_problem=_find_problem(first, expected),
        good_ends=ANSWERED_ENDS | {EndReason.MAX_TURNS_EXCEEDED},
    )
    return verdict.judge(case)


def _is_valid(result: ToolResult, tool: str) -> bool:
    return result.envelope.ok and result.envelope.tool_name == tool and not result.schema_errors


def _find_problem(first: TurnRecord | None, expected: ExpectedSingleCall) -> Problem:
    if first is None or not first.results:
        return Problem(
            "no_tool_calls", locate_problem(0, path=CALLS_PATH, sentence="the answer is text and calls no tool.")
        )
    if len(first.results) > 1:
        sentence = f"{len(first.results)} calls were made; one was asked for."
        return Problem("too_many_calls", locate_problem(first.turn, path=CALLS_PATH, sentence=sentence))
    result = first.results[0]
    if result.envelope.tool_name != expected.tool:
        sentence = f"{result.envelope.tool_name} was called; the task needs {expected.tool}."
        return Problem("wrong_arguments", locate_problem(first.turn, call=0, sentence=sentence))
    given = render_short((result.arguments or {}).get(expected.field))
    path = f"$.{expected.field}"
    sentence = f"{path} is {given}; {render_short(expected.value)} was asked for."
    return Problem("wrong_arguments", locate_problem(first.turn, call=0, path=path, sentence=sentence))
