"""What a verdict rests on, as far as it is known before anything is tried: the calls that a task cannot do without."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.causes.step_types import ToolRun, WireStep


@dataclass(frozen=True, slots=True)
class TaskNeeds:
    """What the task needs.

    Args:
        tools: The tools that must be called with success, one entry per call; None where that is not known.
        provoked: Codes of causes that the task itself brings about, one entry per time it does. They are no departure.
        together: How many calls have to stand in one message.
        reply: Whether the final text is part of the task.
    """

    tools: tuple[str, ...] | None = None
    provoked: tuple[str, ...] = ()
    together: int = 1
    reply: bool = False


def lacks_call(steps: Sequence[WireStep], needs: TaskNeeds) -> bool | None:
    """Return whether a call that the task needs was never made with success; None where that is not known."""
    if needs.tools is None:
        return None
    made = Counter(step.tool for step in steps if isinstance(step, ToolRun) and step.ok)
    return any(count > made[tool] for tool, count in Counter(needs.tools).items())
