"""A trial's steps with what is kept beside their columns, for whoever tells it again."""

from dataclasses import dataclass

from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step, Trial
from toolbench.lab.traces.step_facts import load_details


@dataclass(frozen=True, slots=True)
class StepWithDetails:
    """A step with its facts read."""

    step: Step
    facts: JsonObject

    @property
    def is_tool(self) -> bool:
        return self.step.kind == Step.Kind.TOOL


def list_steps(trial: Trial) -> tuple[StepWithDetails, ...]:
    """Those of the execution that counts, in order. `trial.steps` is prefetched with bodies."""
    own = (step for step in trial.steps.all() if step.execution == trial.execution)
    return tuple(StepWithDetails(step, load_details(step.body.facts)) for step in own)
