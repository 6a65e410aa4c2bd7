"""The failures page: a heat map of causes by model, and groups of similar failures.

Causes are counted for the trials that one version of the table of causes has classified.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.db import connection
from django.db.models import Count, Min, Q

from toolbench.evals.causes.table import WireCause, load_causes, read_taxonomy_version
from toolbench.evals.judging.failure_classes import FailureClass, load_classes
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
    """A cause that was found in a run, whether or not the model recovered.

    Attributes:
        path: JSON path without list indices.
        trials: number of trials with the cause.
        occurrences: number of occurrences in these trials.
        recovered_trials: number of trials in which each occurrence was harmless or was corrected by a later step.
        query: query string that lists the trials.
    """

    cause: WireCause
    path: str
    trials: int
    occurrences: int
    recovered_trials: int
    query: str


@dataclass(frozen=True, slots=True)
class FailuresPage:
    """Everything that the failures page shows.

    Attributes:
        runs: runs that the form offers.
        seen_causes: causes found in the run of the query, recovered or not; () unless the query names exactly one run.
        version: version of the table of causes that gave all shown causes.
        current_version: current version of the table of causes.
        uncounted_failures: number of failed trials that `version` has not classified; they are not counted.
        can_reclassify: whether a failed trial that was not imported has no classification by the current version.
        omission_notice: sentences about the scenario versions that the heat map does not count; "" for none.
    """

    query: FailuresQuery
    runs: tuple[Run, ...]
    heat_map: HeatMap
    groups: FailureGroups
    seen_causes: tuple[SeenCause, ...]
    version: int
    current_version: int
    uncounted_failures: int
    can_reclassify: bool
    omission_notice: str

    @property
    def simulated(self) -> bool:
        """Return whether all chosen runs are simulated; without chosen runs, whether the scope has simulated runs."""
        chosen = [run.simulated for run in self.runs if run.pk in self.query.runs]
        return all(chosen) if chosen else self.query.scope == "demo"


_pages: VersionCache[FailuresPage] = VersionCache(max_entries=8)


def get_failures(query: FailuresQuery) -> FailuresPage:
    """Return the failures page with a number of SQL queries that does not depend on the number of runs and trials.

    A page over ended runs is kept in memory until their trials change.
    """
    scope = query.causes_scope
    sums = sum_causes(scope)
    page = _pages.get(sums.version, query, lambda: _build_page(query, scope, sums))
    offered_runs = Run.objects.filter(Run.COUNTED & Q(**scope.kinds) | Q(pk__in=query.runs), deleted_at=None)
    return replace(page, runs=list_run_choices(offered_runs, query.runs))


def _build_page(query: FailuresQuery, scope: CauseScope, sums: CauseSums) -> FailuresPage:
    """Return the page without the runs that the form offers."""
    counts = count_failures(sums.lines, counts_failure_classes=query.counts_failure_classes)
    heat_map = build_heat_map(query, counts, _find_stopping(scope))
    return FailuresPage(
        query=query,
        runs=(),
        heat_map=heat_map,
        groups=list_failure_groups(query, counts),
        seen_causes=_list_seen_causes(query, counts),
        version=counts.version,
        current_version=read_taxonomy_version(),
        uncounted_failures=counts.uncounted_failures,
        can_reclassify=counts.reclassifiable > 0,
        omission_notice=_describe_versions(counts, heat_map),
    )


def _find_stopping(scope: CauseScope) -> Mapping[ModelKey, StoppingDesign]:
    """Return the stopping design of each model with sequential stopping, with at most two SQL queries."""
    cells = Cell.objects.filter(scope.chosen.condition, run__in=scope.filter_runs()).order_by()
    sequential = cells.filter(error__isnull=False).values("config__provider_name", "config__model_name")
    if not (designs := list(sequential.annotate(error=Min("error")))):
        return {}
    models = [row["config__model_name"] for row in designs]
    counts = cells.filter(config__model_name__in=models).values_list("config__provider_name", "config__model_name")
    cell_counts = {(provider, model): count for provider, model, count in counts.annotate(Count("pk"))}
    keys = [(row["config__provider_name"], row["config__model_name"]) for row in designs]
    return {key: StoppingDesign(row["error"], cell_counts[key]) for key, row in zip(keys, designs, strict=True)}


def _describe_versions(counts: FailureCounts, heat_map: HeatMap) -> str:
    notice = build_omission_notice(counts.render_omitted_tokens(None).split(",") if counts.omitted else ())
    if any(column.versions for column in heat_map.columns):
        notice += " A column that names a version counts it, since its model has no newer one; “All” omits it."
    return notice


def _list_seen_causes(query: FailuresQuery, counts: FailureCounts) -> tuple[SeenCause, ...]:
    """Return at most MAX_SEEN_CAUSES causes found in the run of the query; () unless the query names one run.

    Codes that the table of causes lacks are left out.
    """
    if not query.run:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(_SEEN_CAUSES_SQL, [query.run, counts.version, MAX_SEEN_CAUSES])
        rows = [row for row in cursor.fetchall() if row[0] in load_causes()]
    return tuple(
        SeenCause(
            load_causes()[code],
            path,
            trials,
            occurrences,
            recovered_trials,
            TrialFilter(run=query.run, seen=code, path=path, cause_version=counts.version).query(),
        )
        for code, path, trials, occurrences, recovered_trials in rows
    )


def get_causes_by_group() -> Mapping[str, tuple[WireCause, ...]]:
    """Return all causes of the table by group."""
    groups: dict[str, list[WireCause]] = defaultdict(list)
    for cause in load_causes().values():
        groups[cause.group].append(cause)
    return {group: tuple(causes) for group, causes in groups.items()}


def get_classes_by_kind() -> Mapping[str, tuple[FailureClass, ...]]:
    """Return all failure classes of the table: those of failed trials, then those of infrastructure errors."""
    classes = load_classes()
    return {
        "failures": tuple(row for row in classes if not row.infrastructure),
        "infrastructure errors": tuple(row for row in classes if row.infrastructure),
    }
