"""Loading of the steps of a stored trial with their parsed details."""

from dataclasses import dataclass

from toolbench.engine.bounds import parse_duration_ms
from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step, Trial
from toolbench.lab.traces.step_facts import load_details

_REASONING_FIELDS = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class StepWithDetails:
    """A step and its parsed details."""

    step: Step
    facts: JsonObject

    @property
    def is_tool(self) -> bool:
        """Whether the step is the execution of a tool."""
        return self.step.kind == Step.Kind.TOOL

    @property
    def started_ms(self) -> float:
        """Milliseconds from the start of the trial to that of the step; 0 for an implausible time."""
        return parse_duration_ms(self.step.started_ms) or 0.0

    @property
    def duration_ms(self) -> float:
        """Duration in milliseconds; 0 for an implausible one."""
        return parse_duration_ms(self.step.duration_ms) or 0.0

    @property
    def reasoning(self) -> str:
        """Reasoning that the answer has in a field beside its text; "" if it has none."""
        message = get_object(self.facts.get("message"))
        texts = (message.get(name) for name in _REASONING_FIELDS)
        return next((text for text in texts if text and isinstance(text, str)), "")


def list_steps(trial: Trial) -> tuple[StepWithDetails, ...]:
    """Return the steps of the current execution of a trial, in the order in which they were prefetched.

    Args:
        trial: trial whose steps and their bodies are prefetched; every step must have a body.
    """
    steps = (step for step in trial.steps.all() if step.execution == trial.execution)
    return tuple(StepWithDetails(step, load_details(step.body.facts)) for step in steps)
