"""The calls that a task expects, and the comparison of the calls made with them.

The expected calls are known before a trial starts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from toolbench.engine.events import ToolResult
from toolbench.engine.types import JsonObject
from toolbench.evals.causes.required_calls import TaskNeeds
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep
from toolbench.evals.record_counts import is_valid_call


@dataclass(frozen=True, slots=True)
class ExpectedToolCall:
    """An expected call.

    Attributes:
        is_match: Returns whether the arguments of a call of `tool` are right.
        list_wrong_paths: Returns the JSON paths at which the arguments of a call of `tool` are wrong or missing.
        arguments: Right arguments, for display; None if only checks say what is right. Values may be matchers of a
            user's test case.
    """

    tool: str
    is_match: Callable[[JsonObject], bool]
    list_wrong_paths: Callable[[JsonObject], tuple[str, ...]] = field(default=lambda arguments: ())
    arguments: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """The calls that an instance of a task expects.

    Attributes:
        call: Whether the instance needs a call at all; None if the task does not say.
        calls: The calls whose right arguments are known; () says nothing about calls.
        tools: The tools that have to be called if the right arguments are not known.
        provoked: See TaskNeeds.
        together: See TaskNeeds.
        reply: See TaskNeeds.
        ordered: Whether `calls` have to be made in this order.
        others: Whether calls beside `calls` are permitted.
    """

    call: bool | None = None
    calls: tuple[ExpectedToolCall, ...] = ()
    tools: tuple[str, ...] = ()
    provoked: tuple[str, ...] = ()
    together: int = 1
    reply: bool = False
    ordered: bool = False
    others: bool = False

    @property
    def needs(self) -> TaskNeeds:
        """Return the needs by which the cause of a failed trial is found."""
        tools = self.tools or tuple(call.tool for call in self.calls)
        known = bool(tools) or self.call is False
        return TaskNeeds(tools if known else None, self.provoked, self.together, self.reply)


@dataclass(frozen=True, slots=True)
class CallGrades:
    """The grades of one trial's calls.

    Attributes:
        call_expected: Whether a call was needed; None if the task does not say or no request offered a tool.
        graded: Valid calls whose right arguments are known.
        right: Those of them that have the right arguments.
        needs: The needs of the task.
    """

    call_expected: bool | None = None
    graded: int = 0
    right: int = 0
    needs: TaskNeeds = field(default_factory=TaskNeeds)


def grade_calls(steps: Sequence[WireStep], due: ExpectedCalls) -> CallGrades:
    """Return the grades of the calls in `steps`.

    Each valid call of an expected tool is matched with the first remaining expected call that it fits. A call that fits
    none of them is not right. A call made after every expected call of its tool was matched is superfluous, and its
    arguments are not graded.
    """
    offered = any(isinstance(step, ExchangeAttempt) and step.tools_sent for step in steps)
    left = list(due.calls)
    asked_count = right = 0
    for name, arguments in _iter_valid_calls(steps):
        same_tool = [call for call in left if call.tool == name]
        if not same_tool:
            continue
        asked_count += 1
        if met := next((call for call in same_tool if call.is_match(arguments)), None):
            left.remove(met)
            right += 1
    return CallGrades(due.call if offered else None, asked_count, right, due.needs)


def _iter_valid_calls(steps: Sequence[WireStep]) -> Iterator[tuple[str, JsonObject]]:
    """Yield tool and arguments of every call that was valid as the model wrote it."""
    mended: frozenset[int] = frozenset()
    place = 0
    for step in steps:
        if isinstance(step, ExchangeAttempt):
            errors = step.answer.parse_errors if step.answer else ()
            mended, place = frozenset(error.call for error in errors if error.mended and error.call is not None), 0
        elif isinstance(step, ToolRun):
            if place not in mended and is_valid_call(step.result):
                yield step.tool, _get_arguments(step.result)
            place += 1


def _get_arguments(result: ToolResult) -> JsonObject:
    return result.arguments or {}
