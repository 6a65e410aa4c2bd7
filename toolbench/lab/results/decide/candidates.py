"""Candidates of a decision: configurations with their sums over cells, times and costs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from toolbench.evals.decisions.assessments import MeasuredConfig
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.lab.engine_version import select_distinct_versions
from toolbench.lab.metrics.cost import estimate_cost_per_success
from toolbench.lab.metrics.pool_version import find_pool_version
from toolbench.lab.metrics.pools import (
    CONFIRMATION_PURPOSE,
    MORE_TRIALS_PURPOSE,
    SumRow,
    contains_name,
    merge_rows,
    render_config_label,
    sum_all_runs,
    sum_cells,
)
from toolbench.lab.metrics.repeated_instances import build_scenario_sample
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
from toolbench.lab.models import Cell, Provider, Run
from toolbench.lab.results.decide.candidate_context import CANDIDATE_KEY, CandidateContext, read_context
from toolbench.lab.results.decide.candidate_labels import build_candidate_labels
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.run_choices import MAX_TIME_BETWEEN_RUNS
from toolbench.lab.results.run_differences import RunDifference, describe_run_differences, find_run_differences
from toolbench.lab.results.trial_list.filter import TrialFilter

_TalliedRow = tuple[SumRow, Tally]  # sums of one scenario, and their tally


@dataclass(frozen=True, slots=True)
class Candidate:
    """Configurations with equal settings, over all runs of the scope.

    Attributes:
        measured: the figures that the rule reads.
        tally: counts of its trials.
        name: name of its configurations, which other candidates may share; `measured.label` tells most of them apart.
        policy_hash: hash of the frozen settings.
        config_ids: primary keys of its configurations, the newest last.
        cell_ids: primary keys of the counted cells, ascending.
        run_ids: primary keys of its runs, the newest last.
        scenarios: slugs, sorted, of the scenarios with trials that passed, failed or had an infrastructure error.
        simulated: whether any of its runs is simulated.
        cautions: reasons why its figures are less certain, as parts of a sentence.
        trial_filter: filter of exactly the trials that it counts.
    """

    measured: MeasuredConfig
    tally: Tally
    name: str
    model: str
    provider: str
    profile: str
    policy_hash: str
    config_ids: tuple[int, ...]
    cell_ids: tuple[int, ...]
    run_ids: tuple[int, ...]
    scenarios: tuple[str, ...]
    simulated: bool
    cautions: tuple[str, ...]
    trial_filter: TrialFilter

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
        group: the chosen scenario group; "" without candidates.
        groups: the scenario groups of the scope, the default first.
        cautions: sentences about the scope that make comparisons less certain.
    """

    candidates: tuple[Candidate, ...]
    group: str
    groups: tuple[str, ...]
    cautions: tuple[str, ...]


_pools: VersionCache[CandidatePool] = VersionCache(max_entries=8)


def find_candidate_version(query: DecideQuery) -> UUID | None:
    """Return the version of the stored sums of the query's runs, with one query.

    Returns:
        The version, which changes with any figure of the runs; None while the figures must not be cached, because a run
        in scope is not in the stored sums or the sums are not usable.
    """
    return find_pool_version(_build_run_condition(query))


def get_candidate_pool(query: DecideQuery, version: UUID | None = None) -> CandidatePool:
    """Return the candidates of the query with a number of SQL queries that does not depend on the number of runs.

    Controls and confirmation runs are excluded. A candidate counts, for each scenario, only the newest version that it
    was tried with. The result is kept in memory until the version changes.

    Args:
        query: the scope.
        version: result of `find_candidate_version`; with None, nothing is kept in memory.
    """
    key = (query.scope, query.runs, query.q, query.group, query.chosen)
    return _pools.get(version, key, lambda: _build_pool(query, _read_sums(query)))


def _build_pool(query: DecideQuery, sums: list[SumRow]) -> CandidatePool:
    rows = [row for row in _merge_candidate_sums(query, sums) if not row["control"]]
    groups = tuple(sorted({row["scenario_group"] for row in rows}, key=build_group_sort_key))
    group = query.group if query.group in groups else (groups[0] if groups else "")
    rows_by_key: dict[tuple[Any, ...], list[SumRow]] = defaultdict(list)
    for row in rows:
        if row["scenario_group"] == group:
            rows_by_key[tuple(row[name] for name in CANDIDATE_KEY)].append(row)
    newest_and_older = [split_newest_versions(candidate_rows) for candidate_rows in rows_by_key.values()]
    counted_rows = [row for newest, _ in newest_and_older for row in newest]
    omitted_rows = [row for _, older in newest_and_older for row in older]
    coverage = _ScenarioCoverage.from_rows(counted_rows)
    context = read_context(_filter_runs(query), counted_rows)
    labels = build_candidate_labels(counted_rows)
    candidates = tuple(
        _build_candidate(query, newest, older, labels[key], coverage, context)
        for key, (newest, older) in zip(rows_by_key, newest_and_older, strict=True)
    )
    differences = find_run_differences([_list_cell_ids_with_several_runs(candidates)], "delivered")
    candidates = tuple(_add_difference(candidate, differences) for candidate in candidates)
    omission_notice = (build_omission_notice([render_tokens(omitted_rows)]),) if omitted_rows else ()
    difference_sentences = describe_run_differences(differences)
    cautions = (*difference_sentences, *omission_notice, *_list_pool_cautions(counted_rows))
    return CandidatePool(candidates, group, groups, cautions)


@dataclass(frozen=True, slots=True)
class _ScenarioCoverage:
    """Scenarios that any candidate was tried with.

    Attributes:
        scenarios: slugs of these scenarios.
        newest_versions: the newest version with finished trials, by instance kind and scenario.
    """

    scenarios: frozenset[str]
    newest_versions: Mapping[tuple[str, str], int]

    @classmethod
    def from_rows(cls, rows: list[SumRow]) -> "_ScenarioCoverage":
        """Return the coverage of the sums of all candidates."""
        newest: dict[tuple[str, str], int] = defaultdict(int)
        for row in filter(has_finished_trials, rows):
            key = (row["instance_kind"], row["scenario"])
            newest[key] = max(newest[key], row["scenario_version"])
        return cls(frozenset(scenario for _, scenario in newest), dict(newest))

    def list_missing(self, rows: list[SumRow]) -> tuple[str, ...]:
        """Return the scenarios that a candidate lacks, sorted, such as "weather" or "weather version 3".

        The text contains a version if the candidate has only an older version of the scenario than another candidate.

        Args:
            rows: the sums of the scenarios that the candidate was tried with.
        """
        absent = self.scenarios - {row["scenario"] for row in rows}
        newest = {row["scenario"]: self.newest_versions.get((row["instance_kind"], row["scenario"]), 0) for row in rows}
        outdated = {
            f"{row['scenario']} version {newest[row['scenario']]}"
            for row in rows
            if row["scenario_version"] < newest[row["scenario"]]
        }
        return tuple(sorted(absent | outdated))


def _filter_runs(query: DecideQuery) -> QuerySet[Run]:
    """Return the runs in scope, without confirmation runs."""
    return Run.objects.filter(_build_run_condition(query), deleted_at=None).exclude(purpose=CONFIRMATION_PURPOSE)


def _build_run_condition(query: DecideQuery) -> Q:
    """Return the condition of the runs in scope.

    If the query names runs, these runs are in scope, and the runs of missing trials that were planned for them.
    Otherwise, imported runs are not in scope, and simulated runs are in scope instead of real ones if the query asks
    for them.
    """
    if query.scope == "runs":
        return Q(pk__in=query.runs) | Q(purpose=MORE_TRIALS_PURPOSE, repeat_of__in=query.runs)
    return Run.COUNTED & Q(simulated=query.demo, imported=False)


def _read_sums(query: DecideQuery) -> list[SumRow]:
    """Return the sums of the runs in scope: those of the cells of named runs, else those of all runs."""
    if query.scope == "runs":
        return sum_cells(Cell.objects.filter(query.chosen.condition, run__in=_filter_runs(query)))
    return sum_all_runs(query.chosen, simulated=query.demo, imported=False).rows


def _merge_candidate_sums(query: DecideQuery, sums: list[SumRow]) -> list[SumRow]:
    """Return a row for each candidate and scenario version, without confirmation runs.

    Only candidates whose model name or provider name contains `query.q` have a row.
    """
    key = (*CANDIDATE_KEY, "scenario_group", "control", "scenario", "scenario_version")
    matching_rows = (row for row in sums if contains_name(row, query.q) and not row["confirming"])
    return merge_rows(matching_rows, key)


def _build_samples(
    rows: Sequence[_TalliedRow], context: CandidateContext
) -> tuple[tuple[ScenarioSample, ...], tuple[ScenarioSample, ...]]:
    """Return the samples of end-to-end success and of answered success, each in the order of the rows."""
    end_to_end_samples, answered_samples = [], []
    for row, tally in rows:
        repeated = context.find_repeated(row)
        successes, stopping = tally.passed - tally.late_passes, tally.stopping
        end_to_end_samples.append(build_scenario_sample(successes, tally.tried, repeated.end_to_end, stopping))
        answered_samples.append(build_scenario_sample(tally.passed, tally.answered, repeated.answered, stopping))
    return tuple(end_to_end_samples), tuple(answered_samples)


def _build_candidate(
    query: DecideQuery,
    rows: list[SumRow],
    older_rows: list[SumRow],
    label: str,
    coverage: _ScenarioCoverage,
    context: CandidateContext,
) -> Candidate:
    """Return the candidate of these rows.

    Args:
        query: the scope.
        rows: the sums that count, one for each scenario.
        older_rows: the sums of older scenario versions, which do not count.
        label: the label of the candidate.
        coverage: the scenarios of all candidates.
        context: figures that the sums lack.
    """
    tallied_rows = [(row, build_tally(row)) for row in rows]
    first, tally = rows[0], add_tallies(row_tally for _, row_tally in tallied_rows)
    tried = [(row, row_tally) for row, row_tally in tallied_rows if row_tally.tried]
    tried_rows = [row for row, _ in tried]
    config_ids = tuple(sorted({pk for row in rows for pk in row["config_ids"]}))
    run_ids = tuple(sorted({pk for row in rows for pk in row["run_ids"]}))
    missing = coverage.list_missing(tried_rows)
    return Candidate(
        measured=_build_measured_config(tried or tallied_rows, label, tally, missing, context),
        tally=tally,
        name=render_config_label(first),
        model=first["model_name"],
        provider=first["provider_name"],
        profile=first["profile"],
        policy_hash=first["policy_hash"],
        config_ids=config_ids,
        cell_ids=tuple(sorted(pk for row in rows for pk in row["cell_ids"])),
        run_ids=run_ids,
        scenarios=tuple(sorted(row["scenario"] for row in tried_rows)),
        simulated=any(row["simulated"] for row in rows),
        cautions=tuple(_list_candidate_cautions(rows, tally)),
        trial_filter=_build_trial_filter(query, first, older_rows, config_ids[-1], run_ids),
    )


def _build_measured_config(
    tallied_rows: Sequence[_TalliedRow], label: str, tally: Tally, missing: tuple[str, ...], context: CandidateContext
) -> MeasuredConfig:
    """Return the figures of a candidate.

    Args:
        tallied_rows: the sums that count, one for each scenario with finished trials; all of them if no trial has
            finished.
        label: the label of the candidate.
        tally: the counts of all sums that count.
        missing: the scenarios that the candidate lacks.
        context: figures that the sums lack.
    """
    rows = [row for row, _ in tallied_rows]
    first = rows[0]
    end_to_end_samples, answered_samples = _build_samples(tallied_rows, context)
    costs = context.build_cost_sums(first, tally)
    return MeasuredConfig(
        key=" · ".join(str(first[name]) for name in CANDIDATE_KEY),
        label=label,
        passed=tally.passed,
        tried=tally.tried,
        answered=tally.answered,
        times=merge_times(map(build_times, rows)).list_durations(),
        cost=estimate_cost_per_success(costs),
        infra_errors=context.count_infra_errors(rows),
        missing_scenarios=missing,
        is_local=first["provider_kind"] == Provider.Kind.LOCAL,
        has_repeated_answers=bool(tally.repeating_cells),
        added_manually=tally.added_by_hand,
        retried_passes=tally.late_passes,
        end_to_end_by_scenario=end_to_end_samples,
        answered_by_scenario=answered_samples,
        cost_from=costs.source,
        has_planned_trials=any(MORE_TRIALS_PURPOSE in row["purposes"] for row in rows),
        scenarios=tuple(row["scenario"] for row in rows),
    )


def _build_trial_filter(
    query: DecideQuery, row: SumRow, older_rows: list[SumRow], config_id: int, run_ids: Sequence[int]
) -> TrialFilter:
    """Return the filter of exactly the trials that a candidate counts.

    Args:
        query: the scope.
        row: any row of sums of the candidate.
        older_rows: the sums of older scenario versions, which do not count.
        config_id: primary key of the newest configuration.
        run_ids: primary keys of the runs.
    """
    return TrialFilter(
        runs=",".join(map(str, run_ids)) if query.scope == "runs" else "",
        alike=config_id,
        group=row["scenario_group"],
        without=render_tokens(older_rows),
        instance_kind=row["instance_kind"],
        demo="1" if query.demo else "",
        chosen=replace(query.chosen, models=(), profiles=(), strategies=()),
    )


def _list_cell_ids_with_several_runs(candidates: Sequence[Candidate]) -> Iterable[int]:
    """Return the primary keys of the cells of the candidates that have several runs."""
    return (pk for candidate in candidates if len(candidate.run_ids) > 1 for pk in candidate.cell_ids)


def _add_difference(candidate: Candidate, differences: Sequence[RunDifference]) -> Candidate:
    """Return the candidate, with a caution for each of these differences that is between its runs."""
    texts = (
        f"its runs differ by more than chance: {difference.runs_text}"
        for difference in differences
        if " · ".join(map(str, difference.config)) == candidate.measured.key
    )
    return replace(candidate, cautions=(*texts, *candidate.cautions))


def _list_candidate_cautions(rows: list[SumRow], tally: Tally) -> Iterable[str]:
    if len(select_distinct_versions(version for row in rows for version in row["engines"])) > 1:
        yield "trials ran on several versions of the engine"
    if tally.errors_retried:
        yield f"trials retried after an error, which count as failures: {tally.errors_retried}"
    if tally.saturated:
        yield f"trials measured while this machine was overloaded: {tally.saturated}"
    if any(MORE_TRIALS_PURPOSE in row["purposes"] for row in rows):
        yield "some trials were planned on this page after results were seen"
    if tally.queued or tally.running:
        yield f"trials not finished: {tally.queued + tally.running}"


def _list_pool_cautions(rows: list[SumRow]) -> tuple[str, ...]:
    last_created = max((row["last"] for row in rows), default=None)
    first_created = min((row["first"] for row in rows), default=None)
    candidate_keys = {tuple(row[name] for name in CANDIDATE_KEY) for row in rows}
    keys_without_settings = {tuple(row[name] for name in CANDIDATE_KEY if name != "policy_hash") for row in rows}
    names = {render_config_label(row) for row in rows}
    applies_by_caution = {
        "Some of these runs began more than an hour apart: the time of day may be part of a difference.": bool(
            last_created and first_created and last_created - first_created > MAX_TIME_BETWEEN_RUNS
        ),
        "Some rows differ only in frozen settings, so they are not pooled.": len(keys_without_settings)
        < len(candidate_keys),
        "Some rows differ only in the kind of instances or the tool-use mode, so they are not pooled.": (
            len(names) < len(keys_without_settings)
        ),
    }
    return tuple(sentence for sentence, applies in applies_by_caution.items() if applies)
