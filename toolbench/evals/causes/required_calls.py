"""The calls that a task requires, as far as they are known before a trial starts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.causes.step_types import ToolRun, WireStep


@dataclass(frozen=True, slots=True)
class TaskNeeds:
    """The needs of a task.

    Attributes:
        tools: The tools that must be called with success, one entry per call; None if that is not known.
        provoked: Codes of causes that the task itself provokes, one entry per occurrence. They are no departure.
        together: The number of calls that must be in one message.
        reply: Whether the final text is part of the task.
    """

    tools: tuple[str, ...] | None = None
    provoked: tuple[str, ...] = ()
    together: int = 1
    reply: bool = False


def lacks_call(steps: Sequence[WireStep], needs: TaskNeeds) -> bool | None:
    """Return whether a call that the task needs was never made with success; None if that is not known."""
    if needs.tools is None:
        return None
    made = Counter(step.tool for step in steps if isinstance(step, ToolRun) and step.ok)
    return any(count > made[tool] for tool, count in Counter(needs.tools).items())
