"""The failures page: a heat map of causes by model, and groups of similar failures.

All counts are of trials whose cause was found by one version of the table of causes.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.db import connection
from django.db.models import Count, Min, Q

from toolbench.evals.causes.table import WireCause, load_causes, read_taxonomy_version
from toolbench.evals.statistics.intervals import StoppingDesign
from toolbench.lab.metrics.cause_pools import CauseScope, CauseSums, sum_causes
from toolbench.lab.metrics.scenario_versions import ModelKey, build_omission_notice
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Cell, Run
from toolbench.lab.results.failures.counts import FailureCounts, count_failures
from toolbench.lab.results.failures.groups import FailureGroups, list_failure_groups
from toolbench.lab.results.failures.heat_map import HeatMap, build_heat_map
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.run_choices import list_run_choices
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.sql import load_statement

MAX_SEEN_CAUSES = 40
_SEEN_CAUSES_SQL = load_statement("results/failures/seen_causes")


@dataclass(frozen=True, slots=True)
class SeenCause:
    """A cause seen in one run: trials with it, its occurrences, and trials in which it was recovered."""

    cause: WireCause
    path: str
    trials: int
    times: int
    mended: int
    query: str


@dataclass(frozen=True, slots=True)
class FailuresPage:
    """Everything that the failures page shows.

    Attributes:
        runs: to choose from.
        seen_causes: causes of a single named run, recovered or not; () for any other scope.
        version: of the table of causes, by which everything shown was found.
        newest: version of the table.
        other_versions: failed trials that this version has not classified; they are not counted.
        versions_left_out: the sentence that names scenario versions which the heat map does not count.
    """

    query: FailuresQuery
    runs: tuple[Run, ...]
    heat_map: HeatMap
    groups: FailureGroups
    seen_causes: tuple[SeenCause, ...]
    version: int
    newest: int
    other_versions: int
    can_reclassify: bool
    versions_left_out: str

    @property
    def simulated(self) -> bool:
        """Return whether everything shown is simulated, so that no figure describes a real model."""
        chosen = [run.simulated for run in self.runs if run.pk in self.query.runs]
        return all(chosen) if chosen else self.query.scope == "demo"


_pages: VersionCache[FailuresPage] = VersionCache(max_entries=8)


def get_failures(query: FailuresQuery) -> FailuresPage:
    """Return the failures page with at most ten queries, whatever the number of runs and trials.

    A page over ended runs is kept in memory until their trials change.
    """
    scope = query.causes_scope
    sums = sum_causes(scope)
    page = _pages.get(sums.version, query, lambda: _build_page(query, scope, sums))
    kept = Run.objects.filter(Q(**scope.kinds) | Q(pk__in=query.runs), deleted_at=None)
    return replace(page, runs=list_run_choices(kept, query.runs))


def _build_page(query: FailuresQuery, scope: CauseScope, sums: CauseSums) -> FailuresPage:
    """Return the page without the runs to choose from."""
    counts = count_failures(sums.lines, first=query.is_first)
    heat_map = build_heat_map(query, counts, _find_stopping(scope))
    return FailuresPage(
        query=query,
        runs=(),
        heat_map=heat_map,
        groups=list_failure_groups(query, counts),
        seen_causes=_list_seen_causes(query, counts),
        version=counts.version,
        newest=read_taxonomy_version(),
        other_versions=counts.other_versions,
        can_reclassify=counts.own_failures > 0,
        versions_left_out=_describe_versions(counts, heat_map),
    )


def _find_stopping(scope: CauseScope) -> Mapping[ModelKey, StoppingDesign]:
    """Return the smallest error and the number of cells of each model with sequential stopping, with one query."""
    cells = Cell.objects.filter(scope.chosen.condition, run__in=scope.filter_runs()).order_by()
    sequential = cells.filter(error__isnull=False).values("config__provider_name", "config__model_name")
    if not (designs := list(sequential.annotate(error=Min("error")))):
        return {}
    named = [line["config__model_name"] for line in designs]
    lines = cells.filter(config__model_name__in=named).values_list("config__provider_name", "config__model_name")
    numbers = {(provider, model): number for provider, model, number in lines.annotate(Count("pk"))}
    keys = [(line["config__provider_name"], line["config__model_name"]) for line in designs]
    return {key: StoppingDesign(line["error"], numbers[key]) for key, line in zip(keys, designs, strict=True)}


def _describe_versions(counts: FailureCounts, heat_map: HeatMap) -> str:
    notice = build_omission_notice(counts.list_omitted_tokens(None).split(",") if counts.omitted else ())
    if any(column.versions for column in heat_map.columns):
        notice += " A column that names a version counts it, since its model tried no newer one; “All” leaves it out."
    return notice


def _list_seen_causes(query: FailuresQuery, counts: FailureCounts) -> tuple[SeenCause, ...]:
    """Return the causes seen in the run of the query; () without one."""
    if not query.run:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(_SEEN_CAUSES_SQL, [query.run, counts.version, MAX_SEEN_CAUSES])
        lines = [line for line in cursor.fetchall() if line[0] in load_causes()]
    return tuple(
        SeenCause(
            load_causes()[code],
            path,
            trials,
            times,
            mended,
            TrialFilter(run=query.run, seen=code, path=path, cause_version=counts.version).query(),
        )
        for code, path, trials, times, mended in lines
    )


def get_causes_by_group() -> Mapping[str, tuple[WireCause, ...]]:
    """Return every cause of the taxonomy by group."""
    groups: dict[str, list[WireCause]] = defaultdict(list)
    for cause in load_causes().values():
        groups[cause.group].append(cause)
    return {group: tuple(causes) for group, causes in groups.items()}


def get_taxonomy_version() -> int:
    """Return the version of the table of causes."""
    return read_taxonomy_version()
