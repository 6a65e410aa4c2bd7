"""Details of the open row of the matrix: its figures by scenario and its trials, failed ones first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.evals.statistics.quantiles import Quantile
from toolbench.lab.metrics.rate import Rate, count_trials_to_decide
from toolbench.lab.metrics.scenario_groups import CONTROL_GROUP
from toolbench.lab.metrics.scenario_versions import build_exclusion
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.models import Cell, RunConfig, Trial
from toolbench.lab.results.matrix.rows import MatrixRow, ScenarioSums
from toolbench.lab.results.matrix.table import Matrix

MAX_TRIALS = 8


@dataclass(frozen=True, slots=True)
class ScenarioDetails:
    """Scenario of the open row.

    Attributes:
        trials_query: query string that selects its trials.
        answered: answered success.
        delivered: end-to-end success.
        true_rate: known success rate of a simulated model as a fraction, which the interval should contain; None if no
            rate is known.
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
    """Trial of the open row.

    Attributes:
        sentence: the first problem in words; empty without one.
    """

    id: int
    outcome: str
    sentence: str
    failure_class: str
    scenario: str
    turns: int
    duration_ms: float | None


@dataclass(frozen=True, slots=True)
class RowDetails:
    """Content of the open row.

    Attributes:
        trials: at most MAX_TRIALS failed trials, then trials with an infrastructure error and passed ones; of tool
            scenarios, or of controls if the metric covers only these.
        options: request options of the row's newest configuration.
        policy_hash: hash of the frozen settings of that configuration.
        upstreams: names of upstream providers that answered.
        more_trials: number of further trials that would decide whether the target is met, if the share stayed the
            same; None if that is decided already, or if no number can be computed.
        delivered: end-to-end success in tool scenarios.
        answered: answered success in tool scenarios.
    """

    row: MatrixRow
    scenario_details: tuple[ScenarioDetails, ...]
    trials: tuple[DetailsTrial, ...]
    options: Mapping[str, object]
    policy_hash: str
    upstreams: tuple[str, ...]
    more_trials: int | None
    delivered: Rate
    answered: Rate


def get_row_details(matrix: Matrix) -> RowDetails | None:
    """Return the details of the open row, with four queries.

    Returns:
        None, without a query, if `matrix.query.cell` is the key of no row.
    """
    row = next((row for row in matrix.rows if row.key == matrix.query.cell), None)
    if row is None:
        return None
    target = matrix.query.target
    config = RunConfig.objects.get(pk=row.config_ids[-1])
    of_control = matrix.metric.of_control
    scenarios = {sums.scenario for sums in row.scenarios if sums.control == of_control}
    cells = Cell.objects.filter(build_exclusion(row.omitted), config_id__in=row.config_ids, scenario__in=scenarios)
    if row.trial_filter.prompt:
        cells = cells.filter(prompt_version=row.trial_filter.prompt)
    cell_upstreams = list(cells.values_list("pk", "upstreams"))
    upstreams = {name for _, names in cell_upstreams for name in names}
    answered = row.tally.compute_answered_success(target)
    return RowDetails(
        row=row,
        scenario_details=_build_scenario_details(row, target, config.true_rates),
        trials=_list_trials([cell_id for cell_id, _ in cell_upstreams]),
        options=config.options,
        policy_hash=config.policy_hash,
        upstreams=tuple(sorted(upstreams)),
        more_trials=count_trials_to_decide(answered),
        delivered=row.tally.compute_end_to_end_success(target),
        answered=answered,
    )


def _build_scenario_details(row: MatrixRow, target: int, true_rates: Mapping[str, Any]) -> tuple[ScenarioDetails, ...]:
    return tuple(
        ScenarioDetails(
            scenario=scenario.scenario,
            control=scenario.control,
            answered=scenario.tally.compute_answered_success(None if scenario.control else target),
            delivered=scenario.tally.compute_end_to_end_success(None if scenario.control else target),
            tally=scenario.tally,
            p50=scenario.times.p50,
            p95=scenario.times.p95,
            p99=scenario.times.p99,
            trials_query=row.scenario_filter.query(scenario=scenario.scenario),
            true_rate=_find_true_rate(true_rates, row, scenario),
        )
        for scenario in row.scenarios
    )


def _find_true_rate(true_rates: Mapping[str, Any], row: MatrixRow, sums: ScenarioSums) -> float | None:
    """Return the known success rate of a simulated model in the scenario, or else in its group.

    For a streamed row, rates of streamed answers take precedence.

    Args:
        true_rates: rates by scenario or group, and by strategy; under the key "streamed", those of streamed answers.
        row: row of the model.
        sums: sums of the scenario.

    Returns:
        None if no rate is known, and for methods other than native.
    """
    if row.settings["method"] != "native":
        return None
    tables = (true_rates.get("streamed", {}), true_rates) if row.settings["stream"] else (true_rates,)
    names = (sums.scenario, CONTROL_GROUP if sums.control else sums.group)
    known_rates = (table[name] for table in tables for name in names if name in table)
    rates: Mapping[str, float] = next(known_rates, {})
    return rates.get(row.settings["strategy"])


def _list_trials(cell_ids: list[int]) -> tuple[DetailsTrial, ...]:
    """Return the newest failed trials, at most MAX_TRIALS, and then other trials, the newest of an outcome first.

    Other trials, infrastructure errors before passed ones, are added until there are MAX_TRIALS. At least one is
    added if there is one.
    """
    done = Trial.objects.filter(cell_id__in=cell_ids, state=Trial.State.DONE).order_by("-pk")
    trials = done.defer("final_text", "rendered_prompt", "verdict")
    failed = list(trials.filter(outcome=Trial.Outcome.FAIL)[:MAX_TRIALS])
    others = trials.filter(outcome__in=[Trial.Outcome.INFRA, Trial.Outcome.PASS]).order_by("outcome", "-pk")
    return tuple(_build_trial(trial) for trial in (*failed, *others[: max(1, MAX_TRIALS - len(failed))]))


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
