"""The open row of the matrix: its split by scenario and its trials, failed ones first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.evals.statistics.quantiles import Quantile
from toolbench.lab.metrics.rate import Rate, count_trials_to_decide
from toolbench.lab.metrics.scenario_versions import build_exclusion
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.models import Cell, RunConfig, Trial
from toolbench.lab.results.matrix.rows import MatrixRow, ScenarioSums
from toolbench.lab.results.matrix.table import Matrix

MAX_TRIALS = 8


@dataclass(frozen=True, slots=True)
class ScenarioDetails:
    """One scenario of the open row.

    Attributes:
        true_rate: the rate that a simulated model publishes, which the interval should cover; else None.
    """

    scenario: str
    control: bool
    answered: Rate
    delivered: Rate
    tally: Tally
    p50: Quantile | None
    p95: Quantile | None
    p99: Quantile | None
    trials_query: str
    true_rate: float | None


@dataclass(frozen=True, slots=True)
class DetailsTrial:
    """A trial of the open row."""

    id: int
    outcome: str
    sentence: str
    failure_class: str
    scenario: str
    turns: int
    duration_ms: float | None


@dataclass(frozen=True, slots=True)
class RowDetails:
    """Everything that the open row shows."""

    row: MatrixRow
    scenario_details: tuple[ScenarioDetails, ...]
    trials: tuple[DetailsTrial, ...]
    options: Mapping[str, object]
    policy_hash: str
    upstreams: tuple[str, ...]
    more: int | None  # trials that would decide against the target at this share
    delivered: Rate
    answered: Rate


def get_row_details(matrix: Matrix) -> RowDetails | None:
    """Return the open row with four queries; None, without a query, if the query names no row of this matrix."""
    row = next((row for row in matrix.rows if row.key == matrix.query.cell), None)
    if row is None:
        return None
    target = matrix.query.target
    config = RunConfig.objects.get(pk=row.config_ids[-1])
    cells = Cell.objects.filter(config_id__in=row.config_ids, scenario_group=row.trials.group)
    if row.trials.prompt:
        cells = cells.filter(prompt_version=row.trials.prompt)
    found = list(cells.filter(build_exclusion(row.trials.without)).values_list("pk", "upstreams"))
    upstreams = {name for _, names in found for name in names}
    answered = row.tally.answered_success(target)
    return RowDetails(
        row=row,
        scenario_details=_build_scenario_details(row, target, config.true_rates),
        trials=_list_trials([pk for pk, _ in found]),
        options=config.options,
        policy_hash=config.policy_hash,
        upstreams=tuple(sorted(upstreams)),
        more=count_trials_to_decide(answered),
        delivered=row.tally.delivered(target),
        answered=answered,
    )


def _build_scenario_details(row: MatrixRow, target: int, true_rates: Mapping[str, Any]) -> tuple[ScenarioDetails, ...]:
    return tuple(
        ScenarioDetails(
            scenario=scenario.scenario,
            control=scenario.control,
            answered=scenario.tally.answered_success(None if scenario.control else target),
            delivered=scenario.tally.delivered(None if scenario.control else target),
            tally=scenario.tally,
            p50=scenario.times.p50,
            p95=scenario.times.p95,
            p99=scenario.times.p99,
            trials_query=row.trials.query(scenario=scenario.scenario, group=""),
            true_rate=_find_true_rate(true_rates, row, scenario),
        )
        for scenario in row.scenarios
    )


def _find_true_rate(true_rates: Mapping[str, Any], row: MatrixRow, sums: ScenarioSums) -> float | None:
    """Return the rate that the simulated model publishes for the scenario, or else for its group.

    Rates for streamed answers take precedence where the row is streamed.

    Returns:
        None where no rate is published, and for methods other than native.
    """
    if row.settings["method"] != "native":
        return None
    tables = (true_rates.get("streamed", {}), true_rates) if row.settings["stream"] else (true_rates,)
    names = (sums.scenario, "control" if sums.control else row.trials.group)
    published = (table[name] for table in tables for name in names if name in table)
    rates: Mapping[str, float] = next(published, {})
    return rates.get(row.settings["strategy"])


def _list_trials(cell_ids: list[int]) -> tuple[DetailsTrial, ...]:
    """Return the newest failures, then infrastructure errors and passes up to MAX_TRIALS, at least one of them."""
    done = Trial.objects.filter(cell_id__in=cell_ids, state=Trial.State.DONE).order_by("-pk")
    slim = done.defer("final_text", "rendered_prompt", "verdict")
    failed = list(slim.filter(outcome=Trial.Outcome.FAIL)[:MAX_TRIALS])
    rest = slim.filter(outcome__in=[Trial.Outcome.INFRA, Trial.Outcome.PASS]).order_by("outcome", "-pk")
    return tuple(_build_trial(trial) for trial in (*failed, *rest[: max(1, MAX_TRIALS - len(failed))]))


def _build_trial(trial: Trial) -> DetailsTrial:
    return DetailsTrial(
        id=trial.pk,
        outcome=trial.outcome,
        sentence=trial.sentence,
        failure_class=trial.failure_class,
        scenario=trial.scenario,
        turns=trial.turns,
        duration_ms=trial.duration_ms,
    )
