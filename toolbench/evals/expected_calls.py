"""Which calls a task wants, as far as that is known before anything is tried, and how the calls that were made compare
with them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from toolbench.engine.events import ToolResult
from toolbench.engine.types import JsonObject
from toolbench.evals.causes.required_calls import TaskNeeds
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep
from toolbench.evals.record_counts import is_valid_call


@dataclass(frozen=True, slots=True)
class ExpectedToolCall:
    """`is_match` says of the arguments of a call of `tool` whether they are the right ones."""

    tool: str
    is_match: Callable[[JsonObject], bool]


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """`call`: whether this instance of the task needs a call at all, None where it does not say. `calls` are those
    whose right arguments are known; () says nothing of them. `tools` are those that have to be called where the right
    arguments are not known; `provoked`, `together` and `reply` as in Needs."""

    call: bool | None = None
    calls: tuple[ExpectedToolCall, ...] = ()
    tools: tuple[str, ...] = ()
    provoked: tuple[str, ...] = ()
    together: int = 1
    reply: bool = False

    @property
    def needs(self) -> TaskNeeds:
        """What a failed trial's cause is measured against."""
        tools = self.tools or tuple(one.tool for one in self.calls)
        known = bool(tools) or self.call is False
        return TaskNeeds(tools if known else None, self.provoked, self.together, self.reply)


@dataclass(frozen=True, slots=True)
class CallGrades:
    """`call_expected` is None where no tool was offered in any request. `asked` are valid calls whose right arguments
    are known, `right` those of them that have them. `needs` is what the task needs."""

    call_expected: bool | None = None
    asked: int = 0
    right: int = 0
    needs: TaskNeeds = field(default_factory=TaskNeeds)


def grade_calls(steps: Sequence[WireStep], due: ExpectedCalls) -> CallGrades:
    """Each valid call of a tool that is due takes the first due call left that it meets. One that meets none is not
    right; one that comes when every due call of its tool was met is one too many, and its arguments are not asked."""
    offered = any(isinstance(step, ExchangeAttempt) and step.tools_sent for step in steps)
    left = list(due.calls)
    asked = right = 0
    for name, arguments in _iter_valid_calls(steps):
        mine = [one for one in left if one.tool == name]
        if not mine:
            continue
        asked += 1
        if met := next((one for one in mine if one.is_match(arguments)), None):
            left.remove(met)
            right += 1
    return CallGrades(due.call if offered else None, asked, right, due.needs)


def _iter_valid_calls(steps: Sequence[WireStep]) -> Iterator[tuple[str, JsonObject]]:
    """Tool and arguments of every call that was valid as the model wrote it."""
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
