"""Loading of the steps of a stored trial with their parsed details."""

from dataclasses import dataclass

from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step, Trial
from toolbench.lab.traces.step_facts import load_details


@dataclass(frozen=True, slots=True)
class StepWithDetails:
    """A step and its parsed details."""

    step: Step
    facts: JsonObject

    @property
    def is_tool(self) -> bool:
        """Whether the step is the execution of a tool."""
        return self.step.kind == Step.Kind.TOOL


def list_steps(trial: Trial) -> tuple[StepWithDetails, ...]:
    """Return the steps of the current execution of a trial, in the order in which they were prefetched.

    Args:
        trial: trial whose steps and their bodies are prefetched.
    """
    steps = (step for step in trial.steps.all() if step.execution == trial.execution)
    return tuple(StepWithDetails(step, load_details(step.body.facts)) for step in steps)
