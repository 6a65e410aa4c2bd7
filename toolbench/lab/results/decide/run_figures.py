"""Figures of the configurations of one run, counted from its trials."""

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, QuerySet

from toolbench.evals.decisions.assessments import IntervalEstimate, MeasuredConfig
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.lab.metrics.cost import CostSums, estimate_cost_per_success, sum_costs
from toolbench.lab.metrics.repeated_instances import ScenarioCount, count_scenarios
from toolbench.lab.metrics.tally import REPEATING
from toolbench.lab.models import Cell, Provider, RunConfig, Trial
from toolbench.lab.models.trials import ANSWERED
from toolbench.lab.results.decide.candidate_context import sort_counts


@dataclass(frozen=True, slots=True)
class _TrialFigures:
    """Figures of trials by configuration id.

    Attributes:
        durations: milliseconds of the answered trials.
        costs: sums of costs.
        infra_errors: numbers of infrastructure errors by failure class.
        repeating: ids of the configurations with a deterministic endpoint that repeated an answer.
    """

    durations: Mapping[int, list[float]]
    costs: Mapping[int, CostSums]
    infra_errors: Mapping[int, dict[str, int]]
    repeating: Set[int]

    def compute_cost(self, config_id: int) -> tuple[IntervalEstimate | None, str]:
        """Return dollars per end-to-end success and the source of the costs.

        Returns:
            None and the reason if the cost of a trial is unknown or there is no end-to-end success.
        """
        costs = self.costs.get(config_id, CostSums())
        return estimate_cost_per_success(costs), costs.source


def measure_run(run_id: int, *, group: str) -> tuple[MeasuredConfig, ...]:
    """Return the measurements of a run's configurations that have finished trials, with seven queries.

    Args:
        run_id: the run.
        group: the scenario group. Its controls and manually added trials do not count.
    """
    cells = Cell.objects.filter(run_id=run_id, scenario_group=group, control=False)
    trials = Trial.objects.filter(cell__in=cells.values("pk"), added_by_hand=False)
    configs = {config.pk: config for config in RunConfig.objects.filter(run_id=run_id)}
    figures = _read_figures(trials, cells)
    counts_by_config: dict[int, list[ScenarioCount]] = defaultdict(list)
    for scenario_count in count_scenarios(trials):
        counts_by_config[scenario_count.config].append(scenario_count)
    return tuple(_measure_config(configs[pk], counts, figures) for pk, counts in counts_by_config.items())


def _read_figures(trials: QuerySet[Trial], cells: QuerySet[Cell]) -> _TrialFigures:
    unordered = trials.order_by()
    timed = unordered.filter(ANSWERED, duration_ms__isnull=False).values_list("config_id")
    durations = {pk: list(values) for pk, values in timed.annotate(durations=ArrayAgg("duration_ms"))}
    infra_errors: dict[int, dict[str, int]] = defaultdict(dict)
    errors = unordered.filter(outcome="infra").values_list("config_id", "failure_class").annotate(count=Count("pk"))
    for config_id, failure_class, count in errors:
        infra_errors[config_id][failure_class or "infrastructure"] = count
    repeating = set(cells.filter(REPEATING).values_list("config_id", flat=True))
    return _TrialFigures(durations, sum_costs(trials), infra_errors, repeating)


def _measure_config(config: RunConfig, counts: list[ScenarioCount], figures: _TrialFigures) -> MeasuredConfig:
    cost, cost_from = figures.compute_cost(config.pk)
    return MeasuredConfig(
        key=str(config.pk),
        label=str(config),
        passed=sum(scenario.passed for scenario in counts),
        tried=sum(scenario.tried for scenario in counts),
        answered=sum(scenario.answered for scenario in counts),
        times=figures.durations.get(config.pk, []),
        cost=cost,
        infra_errors=sort_counts(figures.infra_errors.get(config.pk, {})),
        is_local=config.provider_kind == Provider.Kind.LOCAL,
        retried_passes=sum(scenario.late for scenario in counts),
        end_to_end_by_scenario=tuple(
            ScenarioSample(scenario.passed - scenario.late, scenario.tried) for scenario in counts
        ),
        answered_by_scenario=tuple(ScenarioSample(scenario.passed, scenario.answered) for scenario in counts),
        cost_from=cost_from,
        has_repeated_answers=config.pk in figures.repeating,
        scenarios=tuple(scenario.scenario for scenario in counts),
    )
