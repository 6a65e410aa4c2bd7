"""The requirements of a task that are known before a trial starts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.causes.step_types import ToolRun, WireStep


@dataclass(frozen=True, slots=True)
class TaskNeeds:
    """The requirements of a task.

    Attributes:
        tools: The names of the tools that must be called with success, one entry per call; None if they are not known.
        provoked_causes: Codes of causes that the task itself provokes, one entry per step with the cause.
        parallel_calls: The number of calls that must be in one message.
        needs_reply: Whether the final text is part of the task.
    """

    tools: tuple[str, ...] | None = None
    provoked_causes: tuple[str, ...] = ()
    parallel_calls: int = 1
    needs_reply: bool = False


def lacks_call(steps: Sequence[WireStep], needs: TaskNeeds) -> bool | None:
    """Return whether a needed call was never made with success; None if `needs.tools` is None."""
    if needs.tools is None:
        return None
    successes = Counter(step.tool for step in steps if isinstance(step, ToolRun) and step.ok)
    return any(count > successes[tool] for tool, count in Counter(needs.tools).items())
