"""The failures page: a heat map of causes by model, and groups of similar failures.

It reads indexed columns; causes seen beside the decisive one are read for a single run only. All counts are of trials
classified by one version of the table of causes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection
from django.db.models import Count, F, Min, Q, QuerySet, Sum

from toolbench.evals.causes.table import WireCause, load_causes, read_taxonomy_version
from toolbench.evals.statistics.intervals import FIXED_STOPPING, StoppingDesign
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.metrics.scenario_versions import (
    MODEL_COLUMNS,
    ModelKey,
    ModelVersions,
    build_exclusion,
    build_omission_notice,
    find_omitted_versions,
)
from toolbench.lab.models import Cell, Run, Trial
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.results.run_choices import list_run_choices
from toolbench.lab.results.trial.diff_page import find_nearest_passes
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.sql import load_statement

MAX_MODELS = 30
MAX_FAILURE_GROUPS = 40
MAX_SEEN_CAUSES = 40
FAILED_OUTCOMES = (Trial.Outcome.FAIL, Trial.Outcome.INFRA)

_SEEN_CAUSES_SQL = load_statement("results/failures/seen_causes")


@dataclass(frozen=True, slots=True)
class HeatColumn:
    """One model, with the scenario versions of which only other models tried a newer one."""

    provider: str
    model: str
    tried: int
    stopping: StoppingDesign
    versions: tuple[str, ...]

    @property
    def key(self) -> ModelKey:
        """Return provider and model."""
        return self.provider, self.model

    @property
    def name(self) -> str:
        """Return the model's name without its prefix."""
        return self.model.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cause at one model.

    Attributes:
        heat: 100 times the square root of the share, from 0 to 100, so that rare causes can be seen.
        query: the query string that lists the trials.
    """

    rate: Rate
    heat: float
    query: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One cause of the heat map.

    Attributes:
        count: trials in the newest version of each scenario.
        cells: one per column, counted in the newest version that the model tried; None without such failures.
    """

    cause: WireCause
    count: int
    query: str
    cells: tuple[HeatCell | None, ...]


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of one cause, scenario, path and turn, with the first trial and the nearest passed one."""

    signature: str
    cause: WireCause | None
    scenario: str
    version: int  # of the scenario; versions are never grouped together
    place: str
    count: int
    runs: int
    first_seen: datetime | None
    exemplar: int
    sentence: str
    nearest: int | None
    query: str


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
    """Everything that the failures page shows."""

    query: FailuresQuery
    runs: tuple[Run, ...]  # to choose from
    columns: tuple[HeatColumn, ...]
    left_out: int  # models that have no column
    rows: tuple[HeatRow, ...]
    failure_groups: tuple[FailureGroup, ...]
    seen_causes: tuple[SeenCause, ...]
    version: int  # of the table of causes, by which all that is shown was found
    newest: int  # version of the table
    other_versions: int  # failed trials that this version has not classified; they are not counted
    can_reclassify: bool
    versions_left_out: str  # the sentence that names scenario versions which the heat-map does not count

    @property
    def simulated(self) -> bool:
        """Return whether everything shown is simulated, so that no figure describes a real model."""
        chosen = [run.simulated for run in self.runs if run.pk in self.query.runs]
        return all(chosen) if chosen else self.query.scope == "demo"


def get_failures(query: FailuresQuery) -> FailuresPage:
    """Return the failures page with at most ten queries, whatever the number of runs and trials."""
    looks = _ShownVersion.from_query(query)
    counts = _count_causes(query, looks)
    columns, left_out = _build_columns(query, counts, looks)
    kept = Run.objects.filter(Q(simulated=query.scope == "demo") | Q(pk__in=query.runs), deleted_at=None)
    return FailuresPage(
        query=query,
        runs=list_run_choices(kept, query.runs),
        columns=columns,
        left_out=left_out,
        rows=_build_rows(query, columns, counts, looks),
        failure_groups=_list_failure_groups(query, looks),
        seen_causes=_list_seen_causes(query, looks),
        version=looks.version,
        newest=read_taxonomy_version(),
        other_versions=looks.others,
        can_reclassify=looks.own_failures > 0,
        versions_left_out=_say_versions(looks, columns),
    )


@dataclass(frozen=True, slots=True)
class _ShownVersion:
    """The shown version of the table of causes: the current one if it has results, else the newest.

    Attributes:
        others: failed trials that this version has not classified.
        own_failures: failed trials that reclassifying would reach.
        without: scenario versions that are not the newest of all models.
        models: scenario versions of each model.
    """

    version: int
    others: int
    own_failures: int
    without: str
    models: Mapping[ModelKey, ModelVersions]

    def without_of(self, key: ModelKey) -> str:
        """Return the tokens of the versions that a model's column leaves out because the model tried newer ones."""
        return ",".join(version.token for version in self.models[key].left_out) if key in self.models else ""

    @property
    def counted(self) -> Q:
        """Return the condition of what columns count, for rows with a scenario and a configuration."""
        found = Q()
        for key in self.models:
            if tokens := self.without_of(key):
                found &= ~(Q(**dict(zip(MODEL_COLUMNS, key, strict=True))) & ~build_exclusion(tokens))
        return found

    @classmethod
    def from_query(cls, query: FailuresQuery) -> "_ShownVersion":
        failed = _filter_trials(Trial.objects.filter(outcome__in=FAILED_OUTCOMES), query)
        lines = list(failed.values_list("taxonomy", "run__imported").annotate(count=Count("pk")))
        seen = {version for version, _, _ in lines if version}
        now = read_taxonomy_version()
        shown = now if now in seen or not seen else max(seen)
        other_count = sum(count for version, _, count in lines if version != shown)
        own_count = sum(count for version, imported, count in lines if version != now and not imported)
        overall, models = find_omitted_versions(_filter_cells(query))
        return cls(shown, other_count, own_count, ",".join(version.token for version in overall), models)


def _filter_cells(query: FailuresQuery) -> QuerySet[Cell]:
    cells = Cell.objects.filter(query.chosen.condition, run__deleted_at=None).order_by()
    return cells.filter(run_id__in=query.runs) if query.runs else cells.filter(**_build_scope_filter(query))


def _filter_trials(trials: QuerySet[Trial], query: FailuresQuery) -> QuerySet[Trial]:
    trials = trials.filter(query.chosen.condition, run__deleted_at=None).order_by()
    return trials.filter(run_id__in=query.runs) if query.runs else trials.filter(**_build_scope_filter(query))


def _build_scope_filter(query: FailuresQuery) -> dict[str, bool]:
    """Return the condition of the runs in scope; imported runs are shown only where they are named."""
    return {"run__simulated": query.scope == "demo", "run__imported": False}


def _say_versions(looks: _ShownVersion, columns: Sequence[HeatColumn]) -> str:
    notice = build_omission_notice(looks.without.split(",") if looks.without else ())
    if any(column.versions for column in columns):
        notice += " A column that names a version counts it, since its model tried no newer one; “All” leaves it out."
    return notice


CauseCounts = Mapping[ModelKey, Mapping[str, int]]


def _count_causes(query: FailuresQuery, looks: _ShownVersion) -> CauseCounts:
    """Return the number of trials by (provider, model) and code."""
    grouped = _filter_trials(Trial.objects.filter(~Q(cause=""), looks.counted, taxonomy=looks.version), query)
    lines = grouped.values_list(*MODEL_COLUMNS, "cause").annotate(count=Count("pk"))
    found: dict[ModelKey, dict[str, int]] = defaultdict(dict)
    for provider, model, cause, count in lines:
        found[(provider, model)][cause] = count
    return found


def _totals(query: FailuresQuery, counts: CauseCounts, looks: _ShownVersion) -> Mapping[str, int]:
    """Return the trials by code in the newest version of each scenario. No query unless a model has another version."""
    if not any(model.behind for model in looks.models.values()):
        found = Counter[str]()
        for of_model in counts.values():
            found.update(of_model)
        return found
    trials = Trial.objects.filter(~Q(cause=""), build_exclusion(looks.without), taxonomy=looks.version)
    return dict(_filter_trials(trials, query).values_list("cause").annotate(count=Count("pk")))


def _build_columns(
    query: FailuresQuery, counts: CauseCounts, looks: _ShownVersion
) -> tuple[tuple[HeatColumn, ...], int]:
    """Return the models with failures, most failures first, and how many more there are."""
    lines = _filter_cells(query).filter(looks.counted).values_list(*MODEL_COLUMNS)
    counted = lines.annotate(tried=Sum(F("passed") + F("failed") + F("infra")), error=Min("error"), cells=Count("pk"))
    tried = {(provider, model): (total, StoppingDesign(*ended)) for provider, model, total, *ended in counted}
    if looks.others:
        looked_at = _count_classified(query, looks)
        tried = {key: (looked_at.get(key, 0), stopping) for key, (_, stopping) in tried.items()}
    worst = sorted(counts, key=lambda key: (-sum(counts[key].values()), key))
    shown = worst[:MAX_MODELS]
    columns = (
        _build_column(key, sum(counts[key].values()), *tried.get(key, (0, FIXED_STOPPING)), looks) for key in shown
    )
    return tuple(columns), len(worst) - len(shown)


def _count_classified(query: FailuresQuery, looks: _ShownVersion) -> dict[ModelKey, int]:
    """Return the classified trials by (provider, model), the denominators of the shares."""
    ended = Q(outcome__in=(Trial.Outcome.PASS, *FAILED_OUTCOMES), taxonomy=looks.version)
    lines = _filter_trials(Trial.objects.filter(ended, looks.counted), query).values_list(*MODEL_COLUMNS)
    return {(provider, model): count for provider, model, count in lines.annotate(count=Count("pk"))}


def _build_column(key: ModelKey, failed: int, tried: int, stopping: StoppingDesign, looks: _ShownVersion) -> HeatColumn:
    """Return a column. Counts of cells may lag behind those of trials, so at least the failed trials count as tried."""
    behind = looks.models[key].behind if key in looks.models else ()
    versions = tuple(dict.fromkeys(f"{version.scenario} version {version.version}" for version in behind))
    return HeatColumn(*key, max(tried, failed), stopping, versions)


def _build_rows(
    query: FailuresQuery, columns: Sequence[HeatColumn], counts: CauseCounts, looks: _ShownVersion
) -> tuple[HeatRow, ...]:
    """Return the causes that occurred, in the order of the table."""
    rows, totals = [], _totals(query, counts, looks)
    for code, cause in load_causes().items():
        if any(code in found for found in counts.values()):
            behind = partial(_build_trials_query, query, cause=code, cause_version=looks.version)
            cells = tuple(
                _build_cell(
                    column, counts[column.key].get(code, 0), partial(behind, without=looks.without_of(column.key))
                )
                for column in columns
            )
            rows.append(HeatRow(cause, totals.get(code, 0), behind(without=looks.without), cells))
    return tuple(rows)


def _build_cell(column: HeatColumn, count: int, behind: Callable[..., str]) -> HeatCell | None:
    if not count:
        return None
    rate = build_rate(count, column.tried, stopping=column.stopping)
    heat = round(100 * (count / column.tried) ** 0.5, 1)
    return HeatCell(rate, heat, behind(provider=column.provider, model=column.model))


def _build_trials_query(query: FailuresQuery, **fields: Any) -> str:
    """Return the query string that lists the counted trials."""
    demo = "1" if query.scope == "demo" and not query.runs else ""
    narrowed = TrialFilter(run=query.run, runs=_name_runs(query.runs), demo=demo, chosen=query.chosen, **fields)
    return narrowed.query()


def _name_runs(runs: Sequence[int]) -> str:
    """Return several runs as a list of the trial filter has them; "" for one run or none."""
    return ",".join(map(str, runs)) if len(runs) > 1 else ""


def _list_failure_groups(query: FailuresQuery, looks: _ShownVersion) -> tuple[FailureGroup, ...]:
    """Return the largest failure groups with three queries: groups, exemplars and nearest passed trials."""
    bad = _filter_trials(Trial.objects.filter(~Q(cause=""), taxonomy=looks.version).exclude(cause_signature=""), query)
    counted = bad.values("cause_signature", "scenario_version").annotate(
        count=Count("pk"),
        runs=Count("run_id", distinct=True),
        first_seen=Min("finished_at"),
        exemplar=Min("pk"),
    )
    lines = list(counted.order_by("-count", "cause_signature", "scenario_version")[:MAX_FAILURE_GROUPS])
    ids = [line["exemplar"] for line in lines]
    exemplars = Trial.objects.only("sentence", "scenario", "cause", "taxonomy").in_bulk(ids)
    nearest = find_nearest_passes(ids)
    return tuple(_build_failure_group(query, line, exemplars[line["exemplar"]], nearest) for line in lines)


def _build_failure_group(
    query: FailuresQuery, line: Mapping[str, Any], trial: Trial, nearest: Mapping[int, int]
) -> FailureGroup:
    signature = line["cause_signature"]
    return FailureGroup(
        signature=signature,
        cause=load_causes().get(trial.cause),
        scenario=trial.scenario,
        version=line["scenario_version"],
        place=" · ".join(signature.split(" · ")[2:]),
        count=line["count"],
        runs=line["runs"],
        first_seen=line["first_seen"],
        exemplar=trial.pk,
        sentence=trial.sentence,
        nearest=nearest.get(trial.pk),
        query=_build_trials_query(
            query, cluster=signature, version=line["scenario_version"], cause_version=trial.taxonomy
        ),
    )


def _list_seen_causes(query: FailuresQuery, looks: _ShownVersion) -> tuple[SeenCause, ...]:
    """Return the causes seen in the run of the query; empty without one."""
    if not query.run:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(_SEEN_CAUSES_SQL, [query.run, looks.version, MAX_SEEN_CAUSES])
        lines = [line for line in cursor.fetchall() if line[0] in load_causes()]
    return tuple(
        SeenCause(
            load_causes()[code],
            path,
            trials,
            times,
            mended,
            _build_trials_query(query, seen=code, path=path, cause_version=looks.version),
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
