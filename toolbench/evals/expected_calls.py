"""Which calls a task wants, as far as that is known before anything is tried, and how the calls that were made compare
with them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from toolbench.engine.events import ToolResult
from toolbench.engine.messages import JsonObject
from toolbench.evals.causes.required_calls import Needs
from toolbench.evals.causes.step_types import Exchanged, Ran, WireStep
from toolbench.evals.record_counts import is_valid


@dataclass(frozen=True, slots=True)
class DueCall:
    """`is_met` says of the arguments of a call of `tool` whether they are the right ones."""

    tool: str
    is_met: Callable[[JsonObject], bool]


@dataclass(frozen=True, slots=True)
class Due:
    """`call`: whether this instance of the task needs a call at all, None where it does not say. `calls` are those
    whose right arguments are known; () says nothing of them. `tools` are those that have to be called where the right
    arguments are not known; `provoked`, `together` and `reply` as in Needs."""

    call: bool | None = None
    calls: tuple[DueCall, ...] = ()
    tools: tuple[str, ...] = ()
    provoked: tuple[str, ...] = ()
    together: int = 1
    reply: bool = False

    @property
    def needs(self) -> Needs:
        """What a failed trial's cause is measured against."""
        tools = self.tools or tuple(one.tool for one in self.calls)
        known = bool(tools) or self.call is False
        return Needs(tools if known else None, self.provoked, self.together, self.reply)


@dataclass(frozen=True, slots=True)
class Graded:
    """`call_expected` is None where no tool was offered in any request. `asked` are valid calls whose right arguments
    are known, `right` those of them that have them. `needs` is what the task needs."""

    call_expected: bool | None = None
    asked: int = 0
    right: int = 0
    needs: Needs = field(default_factory=Needs)


def grade(steps: Sequence[WireStep], due: Due) -> Graded:
    """Each valid call of a tool that is due takes the first due call left that it meets. One that meets none is not
    right; one that comes when every due call of its tool was met is one too many, and its arguments are not asked."""
    offered = any(isinstance(step, Exchanged) and step.tools_sent for step in steps)
    left = list(due.calls)
    asked = right = 0
    for name, arguments in _valid_calls(steps):
        mine = [one for one in left if one.tool == name]
        if not mine:
            continue
        asked += 1
        if met := next((one for one in mine if one.is_met(arguments)), None):
            left.remove(met)
            right += 1
    return Graded(due.call if offered else None, asked, right, due.needs)


def _valid_calls(steps: Sequence[WireStep]) -> Iterator[tuple[str, JsonObject]]:
    """Tool and arguments of every call that was valid as the model wrote it."""
    mended: frozenset[int] = frozenset()
    place = 0
    for step in steps:
        if isinstance(step, Exchanged):
            errors = step.answer.parse_errors if step.answer else ()
            mended, place = frozenset(error.call for error in errors if error.mended and error.call is not None), 0
        elif isinstance(step, Ran):
            if place not in mended and is_valid(step.result):
                yield step.tool, _arguments(step.result)
            place += 1


def _arguments(result: ToolResult) -> JsonObject:
    return result.arguments or {}
