"""Figures of a run by configuration and group of scenarios, for the run page."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import CONTROL_GROUP
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.metrics.times import Times, merge_times
from toolbench.lab.models import Cell, Provider, RunConfig
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.runs.sequential_stopping import DECISION_TEXTS


@dataclass(frozen=True, slots=True)
class ScenarioRow:
    """Cell of a configuration.

    Attributes:
        control: whether the scenario is a control.
        answered: answered success.
        decision_text: result of sequential stopping in words, "open" before there is one; "" for a fixed number of
            trials.
    """

    cell_id: int
    scenario: str
    control: bool
    tally: Tally
    answered: Rate
    decision_text: str
    times: Times

    @property
    def trials_query(self) -> str:
        """Return the query string that selects the trials of the cell."""
        return f"cell={self.cell_id}"


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """Configuration in one group of scenarios.

    Attributes:
        group: name of the group; empty if the run has only one group.
        tally: counts of the tool scenarios, or of the controls if there is no tool scenario.
        control: counts of the controls.
        answered: answered success of the trials of `tally`.
        first_attempt: first-attempt success of the trials of `tally`; None if no trial was re-prompted and all passed
            trials passed at the first attempt.
        delivered: end-to-end success of the trials of `tally`.
        times: times of the scenarios of `tally`.
        trials_query: query string that selects the trials of `tally` in the list of trials.
    """

    config: RunConfig
    group: str
    tally: Tally
    control: Tally
    answered: Rate
    first_attempt: Rate | None
    delivered: Rate
    times: Times
    scenarios: tuple[ScenarioRow, ...]
    trials_query: str

    @property
    def local(self) -> bool:
        """Return whether the model runs on this machine, so that decisions do not use its times."""
        return self.config.provider_kind == Provider.Kind.LOCAL


def build_config_row(config: RunConfig, group: str, cells: Sequence[tuple[Cell, Times]], target: float) -> ConfigRow:
    """Return the row of a configuration in one group of scenarios.

    Args:
        config: the configuration.
        group: value of `ConfigRow.group`.
        cells: its cells in the group, controls included, with their times.
        target: target of the rates in percent.
    """
    control = tally_cells(cell for cell, _ in cells if cell.control)
    tools = tally_cells(cell for cell, _ in cells if not cell.control)
    is_control = not tools.cells  # whether the row shows the controls, since there is no tool scenario
    main = control if is_control else tools
    scenario_group = next((cell.scenario_group for cell, _ in cells if not cell.control), CONTROL_GROUP)
    return ConfigRow(
        config=config,
        group=group,
        tally=main,
        control=control,
        answered=main.compute_answered_success(target),
        first_attempt=main.build_rate(main.first_attempt_passed, main.answered, target)
        if _has_reprompts(main)
        else None,
        delivered=main.compute_end_to_end_success(target),
        times=merge_times(times for cell, times in cells if cell.control == is_control),
        scenarios=tuple(_build_scenario_row(cell, times, target) for cell, times in cells),
        trials_query=TrialFilter(run=config.run_id, config=config.pk, group=scenario_group).query(),
    )


def _has_reprompts(counts: Tally) -> bool:
    return bool(counts.asked_again) or counts.first_attempt_passed != counts.passed


def _build_scenario_row(cell: Cell, times: Times, target: float) -> ScenarioRow:
    counts = tally_cells([cell])
    decision_text = "" if cell.error is None else DECISION_TEXTS.get(cell.decided, "open")
    return ScenarioRow(
        cell.pk, cell.scenario, cell.control, counts, counts.compute_answered_success(target), decision_text, times
    )
