"""Conversion of the driver's recorded steps to the `WireStep` objects from which causes are classified."""

from collections.abc import Iterable

from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep
from toolbench.lab.traces.trial_columns import AnyStep
from toolbench.providers.driver.step_records import ExchangeStep


def build_wire_steps(steps: Iterable[AnyStep]) -> tuple[WireStep, ...]:
    """Return recorded steps of the driver as `WireStep` objects, in the same order."""
    return tuple(_build_wire_step(step) for step in steps)


def _build_wire_step(step: AnyStep) -> WireStep:
    if not isinstance(step, ExchangeStep):
        return ToolRun(step.ordinal, step.turn, step.result)
    error = step.error
    return ExchangeAttempt(
        step.ordinal,
        step.turn,
        step.request.has_tools,
        step.turn_read,
        error.code if error else "",
        bool(error and error.tool_support),
    )
