"""Configurations as measured, for a decision: sums over cells, with the times and costs of trials.

No step is read.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q, QuerySet

from toolbench.evals.decisions.assessments import IntervalEstimate, MeasuredConfig
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.lab.engine_version import select_distinct_versions
from toolbench.lab.metrics.cost import CostSums, estimate_cost_per_success, sum_costs
from toolbench.lab.metrics.pool_version import find_pool_version
from toolbench.lab.metrics.pools import (
    CONFIRMATION_PURPOSE,
    SumRow,
    contains_name,
    merge_rows,
    sum_all_runs,
    sum_cells,
)
from toolbench.lab.metrics.repeated_instances import (
    ScenarioCount,
    build_scenario_sample,
    count_scenarios,
)
from toolbench.lab.metrics.scenario_groups import build_group_sort_key
from toolbench.lab.metrics.scenario_versions import (
    build_omission_notice,
    has_finished_trials,
    render_tokens,
    split_newest_versions,
)
from toolbench.lab.metrics.tally import Tally, add_tallies, build_tally
from toolbench.lab.metrics.times import build_times, merge_times
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Cell, Provider, Run, RunConfig, Trial
from toolbench.lab.models.trials import ANSWERED
from toolbench.lab.results.decide.candidate_context import CANDIDATE_KEY, CandidateContext, read_context, sort_counts
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.run_choices import MAX_TIME_BETWEEN_RUNS
from toolbench.lab.results.trial_list.filter import TrialFilter

MORE_TRIALS_PURPOSE = (
    "decide"  # purpose of a run that the decision page planned: its trials enter the choice they were planned for
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration with equal settings, over all runs of the scope.

    Attributes:
        config_ids: primary keys of its configurations, newest last. The last one represents the settings.
        settings: hash of the frozen policy.
    """

    measured: MeasuredConfig
    tally: Tally
    model: str
    canonical: str
    provider: str
    profile: str
    settings: str  # hash of the frozen policy
    config_ids: tuple[int, ...]
    cell_ids: tuple[int, ...]
    run_ids: tuple[int, ...]
    scenarios: tuple[str, ...]
    simulated: bool
    cautions: tuple[str, ...]
    trials: TrialFilter

    @property
    def config_id(self) -> int:
        """Return the primary key of the newest configuration."""
        return self.config_ids[-1]

    @property
    def pending_trials(self) -> int:
        """Return how many of its trials are queued or running."""
        return self.tally.queued + self.tally.running


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """The candidates of a scope.

    Attributes:
        group: the chosen one of `groups`.
        groups: the scenario groups of the scope, the default first.
    """

    candidates: tuple[Candidate, ...]
    group: str
    groups: tuple[str, ...]
    cautions: tuple[str, ...]


_pools: VersionCache[CandidatePool] = VersionCache(max_entries=8)


def find_candidate_version(query: DecideQuery) -> UUID | None:
    """Return the version of the sums that the candidates of the query come from, with one query; None if they change.

    The version of the same runs is another one after any of their figures has changed.
    """
    return find_pool_version(_build_run_condition(query))


def get_candidate_pool(query: DecideQuery, version: UUID | None = None) -> CandidatePool:
    """Return the candidates of the query with at most six queries, whatever the number of runs.

    Controls and confirmation runs are excluded. Of each scenario, a configuration counts with the newest version that
    it was tried with. Candidates of ended runs are kept in memory until their sums change.

    Args:
        query: the scope.
        version: as `find_candidate_version` returns it; None reads the candidates anew.
    """
    key = (query.scope, query.runs, query.q, query.group, query.chosen)
    return _pools.get(version, key, lambda: _build_pool(query, _read_sums(query)))


def _build_pool(query: DecideQuery, sums: list[SumRow]) -> CandidatePool:
    lines = [line for line in _merge_sums(query, sums) if not line["control"]]
    groups = tuple(sorted({line["scenario_group"] for line in lines}, key=build_group_sort_key))
    group = query.group if query.group in groups else (groups[0] if groups else "")
    by_key: dict[tuple[Any, ...], list[SumRow]] = defaultdict(list)
    for line in lines:
        if line["scenario_group"] == group:
            by_key[tuple(line[name] for name in CANDIDATE_KEY)].append(line)
    split = [split_newest_versions(lines) for lines in by_key.values()]
    counted = [line for lines, _ in split for line in lines]
    uncounted = [line for _, older in split for line in older]
    met, context = _ScenarioCoverage.from_lines(counted), read_context(_filter_runs(query), counted)
    found = tuple(_build_candidate(query, lines, older, met, context) for lines, older in split)
    left_out = (build_omission_notice([render_tokens(uncounted)]),) if uncounted else ()
    return CandidatePool(found, group, groups, (*left_out, *_list_pool_cautions(found, counted)))


@dataclass(frozen=True, slots=True)
class _ScenarioCoverage:
    """Scenarios that any configuration was tried with.

    Attributes:
        newest: the newest version with finished trials, by instance kind and scenario.
    """

    scenarios: frozenset[str]
    newest: Mapping[tuple[str, str], int]

    @classmethod
    def from_lines(cls, lines: list[SumRow]) -> "_ScenarioCoverage":
        newest: dict[tuple[str, str], int] = defaultdict(int)
        for line in filter(has_finished_trials, lines):
            key = (line["instance_kind"], line["scenario"])
            newest[key] = max(newest[key], line["scenario_version"])
        return cls(frozenset(line["scenario"] for line in lines), dict(newest))

    def missing(self, lines: list[SumRow]) -> tuple[str, ...]:
        """Return the scenarios that other configurations have and these lines lack.

        A scenario that these lines have in an earlier version only counts as missing.
        """
        absent = self.scenarios - {line["scenario"] for line in lines}
        expected_versions = {
            line["scenario"]: self.newest.get((line["instance_kind"], line["scenario"]), 0) for line in lines
        }
        earlier = {
            f"{line['scenario']} version {expected_versions[line['scenario']]}"
            for line in lines
            if line["scenario_version"] < expected_versions[line["scenario"]]
        }
        return tuple(sorted(absent | earlier))


def _filter_runs(query: DecideQuery) -> QuerySet[Run]:
    """Return the runs in scope, without confirmation runs."""
    return Run.objects.filter(_build_run_condition(query), deleted_at=None).exclude(purpose=CONFIRMATION_PURPOSE)


def _build_run_condition(query: DecideQuery) -> Q:
    """Return the condition of the runs in scope.

    Simulated runs are in scope only in a demo, imported runs only where they are named.
    """
    if query.scope == "runs":
        return Q(pk__in=query.runs) | Q(purpose=MORE_TRIALS_PURPOSE, repeat_of__in=query.runs)
    return Run.COUNTED & Q(simulated=query.demo, imported=False)


def measure_run(run_id: int, *, group: str) -> tuple[MeasuredConfig, ...]:
    """Return the configurations of one run without manually added trials, with six queries."""
    cells = Cell.objects.filter(run_id=run_id, scenario_group=group, control=False)
    planned = Trial.objects.filter(cell__in=cells.values("pk"), added_by_hand=False)
    configs = {config.pk: config for config in RunConfig.objects.filter(run_id=run_id)}
    figures = _read_trial_figures(planned)
    counted: dict[int, list[ScenarioCount]] = defaultdict(list)
    for scenario in count_scenarios(planned):
        counted[scenario.config].append(scenario)
    return tuple(_measure_config(configs[pk], counts, figures) for pk, counts in counted.items())


@dataclass(frozen=True, slots=True)
class _TrialFigures:
    """Figures of trials by configuration id.

    Attributes:
        times: durations of answered trials in milliseconds.
        paid: sums of costs.
        lost: infrastructure errors by failure class.
    """

    times: Mapping[int, list[float]]
    paid: Mapping[int, CostSums]
    lost: Mapping[int, dict[str, int]]

    def compute_cost(self, config_id: int) -> tuple[IntervalEstimate | None, str]:
        """Return dollars per end-to-end success, and the source of the cost or the reason why it is not known."""
        paid = self.paid.get(config_id, CostSums())
        return estimate_cost_per_success(paid), paid.source


def _read_sums(query: DecideQuery) -> list[SumRow]:
    if query.scope == "runs":
        return sum_cells(Cell.objects.filter(query.chosen.condition, run__in=_filter_runs(query)))
    return sum_all_runs(query.chosen, simulated=query.demo, imported=False).rows


def _merge_sums(query: DecideQuery, sums: list[SumRow]) -> list[SumRow]:
    """Return the sums of each candidate and scenario, without confirmation runs."""
    key = (*CANDIDATE_KEY, "scenario_group", "control", "scenario", "scenario_version")
    named = (line for line in sums if contains_name(line, query.q) and not line["confirming"])
    return merge_rows(named, key)


def _read_trial_figures(trials: QuerySet[Trial]) -> _TrialFigures:
    plain = trials.order_by()
    timed = plain.filter(ANSWERED, duration_ms__isnull=False).values_list("config_id")
    lost: dict[int, dict[str, int]] = defaultdict(dict)
    failed = plain.filter(outcome="infra").values_list("config_id", "failure_class").annotate(count=Count("pk"))
    for config_id, name, count in failed:
        lost[config_id][name or "infrastructure"] = count
    times = {pk: list(found) for pk, found in timed.annotate(found=ArrayAgg("duration_ms"))}
    return _TrialFigures(times, sum_costs(trials), lost)


def _build_samples(
    lines: list[SumRow], context: CandidateContext
) -> tuple[tuple[ScenarioSample, ...], tuple[ScenarioSample, ...]]:
    """Return the samples of end-to-end success and of answered success, by scenario."""
    end_to_end_samples, answered_samples = [], []
    for line in lines:
        counts = build_tally(line)
        repeated = context.find_repeated(line)
        successes, stopping = counts.passed - counts.late_passes, counts.stopping
        end_to_end_samples.append(build_scenario_sample(successes, counts.tried, repeated.delivery, stopping))
        answered_samples.append(build_scenario_sample(counts.passed, counts.answered, repeated.given, stopping))
    return tuple(end_to_end_samples), tuple(answered_samples)


def _build_candidate(
    query: DecideQuery, lines: list[SumRow], older: list[SumRow], met: _ScenarioCoverage, context: CandidateContext
) -> Candidate:
    first, tally = lines[0], add_tallies(build_tally(line) for line in lines)
    config_ids = tuple(sorted({pk for line in lines for pk in line["config_ids"]}))
    run_ids = tuple(sorted({pk for line in lines for pk in line["run_ids"]}))
    scenarios = tuple(sorted(line["scenario"] for line in lines))
    key = " · ".join(str(first[name]) for name in CANDIDATE_KEY)
    end_to_end_samples, answered_samples = _build_samples(lines, context)
    paid = context.build_cost_sums(first, tally)
    measured = MeasuredConfig(
        key=key,
        label=_build_label(first),
        passed=tally.passed,
        tried=tally.tried,
        answered=tally.answered,
        times=merge_times(map(build_times, lines)).list_durations(),
        cost=estimate_cost_per_success(paid),
        lost=context.count_lost(lines),
        missing=met.missing(lines),
        local=first["provider_kind"] == Provider.Kind.LOCAL,
        repeating=bool(tally.repeating_cells),
        added_manually=tally.added_by_hand,
        retried_passes=tally.late_passes,
        end_to_end_by_scenario=end_to_end_samples,
        answered_by_scenario=answered_samples,
        cost_from=paid.source,
        planned=any(MORE_TRIALS_PURPOSE in line["purposes"] for line in lines),
        scenarios=tuple(line["scenario"] for line in lines),
    )
    return Candidate(
        measured=measured,
        tally=tally,
        model=first["model_name"],
        canonical=max(name for line in lines for name in line["canonicals"]),
        provider=first["provider_name"],
        profile=first["profile"],
        settings=first["policy_hash"],
        config_ids=config_ids,
        cell_ids=tuple(sorted(pk for line in lines for pk in line["cell_ids"])),
        run_ids=run_ids,
        scenarios=scenarios,
        simulated=any(line["simulated"] for line in lines),
        cautions=tuple(_list_candidate_cautions(lines, tally)),
        trials=_build_trial_filter(query, first, older, config_ids[-1], run_ids),
    )


def _build_trial_filter(
    query: DecideQuery, line: SumRow, older: list[SumRow], config_id: int, run_ids: Sequence[int]
) -> TrialFilter:
    """Return the filter of exactly the trials that a candidate counts."""
    return TrialFilter(
        runs=",".join(map(str, run_ids)) if query.scope == "runs" else "",
        alike=config_id,
        group=line["scenario_group"],
        without=render_tokens(older),
        instance_kind=line["instance_kind"],
        demo="1" if query.demo else "",
        chosen=replace(query.chosen, models=(), profiles=(), strategies=()),
    )


def _measure_config(config: RunConfig, counted: list[ScenarioCount], figures: _TrialFigures) -> MeasuredConfig:
    cost, cost_from = figures.compute_cost(config.pk)
    return MeasuredConfig(
        key=str(config.pk),
        label=str(config),
        passed=sum(scenario.passed for scenario in counted),
        tried=sum(scenario.tried for scenario in counted),
        answered=sum(scenario.answered for scenario in counted),
        times=figures.times.get(config.pk, []),
        cost=cost,
        lost=sort_counts(figures.lost.get(config.pk, {})),
        local=config.provider_kind == Provider.Kind.LOCAL,
        retried_passes=sum(scenario.late for scenario in counted),
        end_to_end_by_scenario=tuple(
            ScenarioSample(scenario.passed - scenario.late, scenario.tried) for scenario in counted
        ),
        answered_by_scenario=tuple(ScenarioSample(scenario.passed, scenario.answered) for scenario in counted),
        cost_from=cost_from,
    )


def _build_label(line: Mapping[str, Any]) -> str:
    named = [line[name] for name in ("provider_name", "model_name", "profile", "strategy", "method", "examples")]
    return " · ".join(filter(None, [*named, "streamed" if line["stream"] else ""]))


def _list_candidate_cautions(lines: list[SumRow], tally: Tally) -> Iterable[str]:
    if len(select_distinct_versions(version for line in lines for version in line["engines"])) > 1:
        yield "pools versions of the engine"
    if tally.errors_retried:
        yield f"errors tried again, not delivered whatever came of it: {tally.errors_retried}"
    if tally.saturated:
        yield f"trials measured while this machine was overloaded: {tally.saturated}"
    if any(MORE_TRIALS_PURPOSE in line["purposes"] for line in lines):
        yield "trials planned here, after looking, take part"
    if tally.queued or tally.running:
        yield f"trials still to come: {tally.queued + tally.running}"


def _list_pool_cautions(candidates: tuple[Candidate, ...], lines: list[SumRow]) -> tuple[str, ...]:
    apart = max((line["last"] for line in lines), default=None)
    first = min((line["first"] for line in lines), default=None)
    models = [(candidate.provider, candidate.measured.label) for candidate in candidates]
    found = {
        "Some of these runs began more than an hour apart: the time of day may be part of a difference.": bool(
            apart and first and apart - first > MAX_TIME_BETWEEN_RUNS
        ),
        "Some rows differ only in frozen settings: they are kept apart, never pooled.": len(set(models)) < len(models),
    }
    return tuple(sentence for sentence, holds in found.items() if holds)
