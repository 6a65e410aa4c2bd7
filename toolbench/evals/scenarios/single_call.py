"""Judging a task that is one call: one turn, one valid call, the right value."""

from dataclasses import dataclass

from toolbench.engine.events import ANSWERS, End, Ended, ToolResult, TurnRecord
from toolbench.engine.messages import JsonObject
from toolbench.evals.expected_calls import Due, DueCall
from toolbench.evals.judging import verdict
from toolbench.evals.judging.diagnosis import Problem, at
from toolbench.evals.judging.messages import shown
from toolbench.evals.record_counts import CALLS
from toolbench.evals.types import Check, Instance, Verdict

ONE_TURN: JsonObject = {"max_turns": 1}
RULE = "The first answer makes one valid call of {tool}, and its {field} is {wanted}. The run ends after that call."


@dataclass(frozen=True, slots=True)
class Wanted:
    """The one call that is right: `field` of the arguments of `tool` is `value`. With `loose`, case and surrounding
    spaces do not matter."""

    tool: str
    field: str
    value: str
    loose: bool = False

    def is_met(self, arguments: JsonObject | None) -> bool:
        given = (arguments or {}).get(self.field)
        if self.loose and isinstance(given, str):
            return given.strip().casefold() == self.value.casefold()
        return bool(given == self.value)

    @property
    def due(self) -> Due:
        return Due(True, (DueCall(self.tool, self.is_met),))


def judge(instance: Instance, ended: Ended, wanted: Wanted) -> Verdict:
    """The case study has no such scenario, so there is no parity pass. Running out of the one turn is the good end."""
    first = next((record for record in ended.turns if record.answer), None)
    results = first.results if first else ()
    valid = len(results) == 1 and _is_valid(results[0], wanted.tool)
    right = valid and wanted.is_met(results[0].arguments)
    checks = (
        Check(f"one valid call of {wanted.tool}", valid, "" if valid else f"calls made: {len(results)}"),
        Check(f"{wanted.field} is {shown(wanted.value)}", right),
    )
    case = verdict.Case(
        instance=instance,
        ended=ended,
        rule=RULE.format(tool=wanted.tool, field=wanted.field, wanted=shown(wanted.value)),
        checks=checks,
        parity_checks=None,
        otherwise=_otherwise(first, wanted),
        good_ends=ANSWERS | {End.MAX_TURNS_EXCEEDED},
    )
    return verdict.judge(case)


def _is_valid(result: ToolResult, tool: str) -> bool:
    return result.envelope.ok and result.envelope.tool_name == tool and not result.schema_errors


def _otherwise(first: TurnRecord | None, wanted: Wanted) -> Problem:
    if first is None or not first.results:
        return Problem("no_tool_calls", at(0, path=CALLS, what="the answer is text and calls no tool."))
    if len(first.results) > 1:
        what = f"{len(first.results)} calls were made; one was asked for."
        return Problem("too_many_calls", at(first.turn, path=CALLS, what=what))
    result = first.results[0]
    if result.envelope.tool_name != wanted.tool:
        what = f"{result.envelope.tool_name} was called; the task needs {wanted.tool}."
        return Problem("wrong_arguments", at(first.turn, call=0, what=what))
    given = shown((result.arguments or {}).get(wanted.field))
    path = f"$.{wanted.field}"
    what = f"{path} is {given}; {shown(wanted.value)} was asked for."
    return Problem("wrong_arguments", at(first.turn, call=0, path=path, what=what))
