"""Scenarios that need one valid call with one right value in one turn, and their judging."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from toolbench.engine.events import ANSWERED_ENDS, EndReason, LoopResult, ToolResult, TurnRecord
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.types import JsonObject
from toolbench.evals.expected_calls import ExpectedCalls, ExpectedToolCall
from toolbench.evals.judging import verdict
from toolbench.evals.judging.diagnosis import NO_TOOL_CALLS_PROBLEM, Problem, locate_problem
from toolbench.evals.judging.messages import render_short
from toolbench.evals.record_counts import CALLS_PATH
from toolbench.evals.types import Check, Instance, Verdict, Workspace

ONE_TURN_LAYER: JsonObject = {"max_turns": 1}  # policy patch of scenarios with one turn and no other settings
RULE = "The first answer makes one valid call of {tool}, and its {field} is {value}. The run ends after that call."


@dataclass(frozen=True, slots=True)
class ExpectedSingleCall:
    """The only call that a task expects.

    Attributes:
        field: The name of the only argument that is compared.
        value: The right value of that argument.
        loose: Whether the case of the argument and the white space around it are ignored.
    """

    tool: str
    field: str
    value: str
    loose: bool = False

    def is_match(self, arguments: JsonObject | None) -> bool:
        """Return whether the arguments have the right value."""
        argument = (arguments or {}).get(self.field)
        if self.loose and isinstance(argument, str):
            return argument.strip().casefold() == self.value.casefold()
        return bool(argument == self.value)

    def list_wrong_paths(self, arguments: JsonObject) -> tuple[str, ...]:
        """Return the JSON path of the field if its value is wrong, else an empty tuple."""
        return () if self.is_match(arguments) else (f"$.{self.field}",)

    def to_expected_calls(self) -> ExpectedCalls:
        """Return the expectations of a task that needs this call and no other."""
        call = ExpectedToolCall(self.tool, self.is_match, self.list_wrong_paths, {self.field: self.value})
        return ExpectedCalls(True, (call,))


def judge(instance: Instance, loop_result: LoopResult, expected: ExpectedSingleCall) -> Verdict:
    """Return the verdict on the first answer; a run that ends at its limit of turns can pass.

    The case study's rule is not applied, because the case study has no scenario of this kind.
    """
    first = next((record for record in loop_result.turns if record.answer), None)
    results = first.results if first else ()
    is_valid = len(results) == 1 and _is_valid(results[0], expected.tool)
    is_right = is_valid and expected.is_match(results[0].arguments)
    checks = (
        Check(f"one valid call of {expected.tool}", is_valid, "" if is_valid else f"calls made: {len(results)}"),
        Check(f"{expected.field} is {render_short(expected.value)}", is_right),
    )
    checked = verdict.CheckedResult(
        instance=instance,
        loop_result=loop_result,
        rule=RULE.format(tool=expected.tool, field=expected.field, value=render_short(expected.value)),
        checks=checks,
        case_study_checks=None,
        fallback_problem=_find_problem(first, expected),
        good_ends=ANSWERED_ENDS | {EndReason.MAX_TURNS_EXCEEDED},
    )
    return verdict.judge(checked)


class SingleCallScenario(ABC):
    """A scenario that is judged by the first answer, which has to make one call with one right value."""

    control = False
    public = True
    methods: tuple[str, ...] = METHODS
    min_requests = 1

    @abstractmethod
    def build_expected_call(self, instance: Instance) -> ExpectedSingleCall:
        """Return the only call that the instance expects."""

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return the expectations of the instance, which needs one call and no other."""
        return self.build_expected_call(instance).to_expected_calls()

    def judge(self, instance: Instance, loop_result: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict on the first answer."""
        return judge(instance, loop_result, self.build_expected_call(instance))


def _is_valid(result: ToolResult, tool: str) -> bool:
    return result.envelope.ok and result.envelope.tool_name == tool and not result.schema_errors


def _find_problem(first: TurnRecord | None, expected: ExpectedSingleCall) -> Problem:
    if first is None or not first.results:
        return NO_TOOL_CALLS_PROBLEM
    if len(first.results) > 1:
        sentence = f"{len(first.results)} calls were made; the task needs one."
        return Problem("too_many_calls", locate_problem(first.turn, path=CALLS_PATH, sentence=sentence))
    result = first.results[0]
    if result.envelope.tool_name != expected.tool:
        sentence = f"{result.envelope.tool_name} was called; the task needs {expected.tool}."
        return Problem("wrong_arguments", locate_problem(first.turn, call=0, sentence=sentence))
    argument = render_short((result.arguments or {}).get(expected.field))
    path = f"$.{expected.field}"
    sentence = f"{path} is {argument}; {render_short(expected.value)} is expected."
    return Problem("wrong_arguments", locate_problem(first.turn, call=0, path=path, sentence=sentence))
