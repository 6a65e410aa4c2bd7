"""The latency page: times per configuration over any runs, with quantiles over all scenarios and by scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
from django.db.models import Q

from toolbench.evals.statistics import Quantile, compute_quantile
from toolbench.lab.metrics.pools import SumRow, merge_rows
from toolbench.lab.metrics.scenario_groups import CONTROL_GROUP, build_group_sort_key
from toolbench.lab.metrics.tally import Tally, add_tallies
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.models import Run
from toolbench.lab.results.latency.query import STORED_METRICS, LatencyQuery
from toolbench.lab.results.latency.times import ScenarioValues, read_times
from toolbench.lab.results.matrix.rows import ROW_KEY, SETTING_FIELDS, MatrixRow, ScenarioSums, build_row
from toolbench.lab.results.matrix.table import SCENARIO_KEY, group_by_row, sum_matrix_rows
from toolbench.lab.results.run_choices import list_run_choices

MAX_ROWS = 20  # configurations on a page
MAX_ANSWERS = 500  # of a configuration, for times that are read from trials
_STORED = np.dtype(">f8")


@dataclass(frozen=True, slots=True)
class TimeSummary:
    """Quantiles of some times, each an order statistic with 95 % bounds."""

    p50: Quantile
    p95: Quantile
    p99: Quantile

    @property
    def n(self) -> int:
        """The number of times."""
        return self.p50.n


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """Times of one configuration.

    Attributes:
        name: the model without its prefix.
        note: profile and the settings in which the rows differ.
        local: whether the model shares this machine, so that decisions do not use its latency.
        times: milliseconds, ascending.
        summary: of all times.
        scenarios: by scenario, in the order of their names.
        first_token: median time to the first token; None without streamed trials.
        counts: of the trials in the shown scenarios.
        trials_query: the query string that lists these trials.
        is_partial: whether only the newest runs were read.
    """

    config_id: int
    name: str
    model: str
    provider: str
    note: str
    local: bool
    times: np.ndarray
    summary: TimeSummary
    scenarios: Mapping[str, TimeSummary]
    first_token: Quantile | None
    counts: Tally
    trials_query: str
    is_partial: bool

    @property
    def label(self) -> str:
        """The name with its note."""
        return " · ".join(filter(None, (self.name, self.note)))


@dataclass(frozen=True, slots=True)
class LatencyPage:
    """Everything that the latency page shows.

    Attributes:
        runs: to choose from.
        groups: of scenarios, the default first and controls last.
        rows: of this page, the smallest p95 of the whole trial first.
        total: configurations on all pages.
    """

    query: LatencyQuery
    runs: tuple[Run, ...]
    group: str
    groups: tuple[str, ...]
    rows: tuple[LatencyRow, ...]
    total: int
    page: int
    total_is_more: bool = False

    @property
    def pages(self) -> int:
        """The number of pages, at least 1."""
        return max(1, -(-self.total // MAX_ROWS))

    @property
    def simulated(self) -> bool:
        """Return whether everything shown is simulated, so that no figure describes a real model."""
        chosen = [run.simulated for run in self.runs if run.pk in self.query.runs]
        return all(chosen) if chosen else self.query.scope == "demo"

    @property
    def is_partial(self) -> bool:
        """Whether only the newest runs of a row were read."""
        return any(row.is_partial for row in self.rows)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Every scenario of the rows."""
        return tuple(sorted({scenario for row in self.rows for scenario in row.scenarios}))


@dataclass(frozen=True, slots=True)
class _Rows:
    """All rows of a scope and group, before times are read."""

    group: str
    groups: tuple[str, ...]
    rows: tuple[MatrixRow, ...]


_rows: VersionCache[_Rows] = VersionCache(max_entries=8)
_pages: VersionCache[LatencyPage] = VersionCache(max_entries=8)


def get_latency(query: LatencyQuery, *, all_rows: bool = False) -> LatencyPage:
    """Return the latency page with at most seven queries. Only trials with an answer count.

    A page over ended runs is kept in memory until their sums change.

    Args:
        query: scope, metric and page.
        all_rows: whether all configurations are on one page, with all their runs.
    """
    sums = sum_matrix_rows(query.matrix_query)
    key = (replace(query, by="", ignored=()), all_rows)
    page = _pages.get(sums.version, key, lambda: _build_page(query, sums.rows, sums.version, all_rows))
    kept = Run.objects.filter(query.run_condition | Q(pk__in=query.runs), deleted_at=None)
    return replace(page, query=query, runs=list_run_choices(kept, query.runs))


def _build_page(query: LatencyQuery, lines: list[SumRow], version: UUID | None, all_rows: bool) -> LatencyPage:
    """Return the page without the runs to choose from."""
    row_key = (query.matrix_query, query.group)
    found = _rows.get(version, row_key, lambda: _build_rows(query, lines))
    number = 1 if all_rows else max(1, min(query.page, -(-len(found.rows) // MAX_ROWS)))
    shown = found.rows if all_rows else found.rows[(number - 1) * MAX_ROWS : number * MAX_ROWS]
    scenarios = [_choose_scenarios(row, found.group) for row in shown]
    times = _read_stored_times(query.metric, scenarios)
    is_limited = query.metric not in STORED_METRICS and not all_rows
    if query.metric not in STORED_METRICS:
        keys = [frozenset((sums.scenario, sums.version) for sums in chosen) for chosen in scenarios]
        times = read_times(shown, keys, query.metric, max_answers=MAX_ANSWERS if is_limited else None)
    varying = [name for name in SETTING_FIELDS if len({row.settings[name] for row in found.rows}) > 1]
    rows = (
        _build_row(row, chosen, by_scenario, varying, is_limited=is_limited)
        for row, chosen, by_scenario in zip(shown, scenarios, times, strict=True)
        if any(map(len, by_scenario.values()))
    )
    return LatencyPage(query, (), found.group, found.groups, tuple(rows), len(found.rows), number)


def _build_rows(query: LatencyQuery, lines: list[SumRow]) -> _Rows:
    """Return the rows with an answer in the group, the smallest p95 first."""
    merged = merge_rows(lines, (*ROW_KEY, *SCENARIO_KEY))
    present = {line["scenario_group"] for line in merged}
    groups = tuple(sorted(present, key=lambda name: (name == CONTROL_GROUP, build_group_sort_key(name))))
    group = query.group if query.group in groups else "".join(groups[:1])
    built = (build_row(found, query.matrix_query, group, {}) for found in group_by_row(merged))
    p95 = [(_find_p95(row, group), row) for row in built if row is not None]
    ordered = sorted((pair for pair in p95 if pair[0] is not None), key=lambda pair: (pair[0], pair[1].key))
    return _Rows(group, groups, tuple(row for _, row in ordered))


def _find_p95(row: MatrixRow, group: str) -> float | None:
    found = row.times.p95 if group != CONTROL_GROUP else None
    if group == CONTROL_GROUP:
        values = _join_times(_choose_scenarios(row, group), "trial")
        found = compute_quantile(values, 0.95) if len(values) else None
    return found.value if found else None


def _choose_scenarios(row: MatrixRow, group: str) -> tuple[ScenarioSums, ...]:
    return tuple(sums for sums in row.scenarios if sums.control == (group == CONTROL_GROUP))


def _join_times(scenarios: Sequence[ScenarioSums], metric: str) -> np.ndarray:
    parts = [sums.times.durations if metric == "trial" else sums.times.first_tokens for sums in scenarios]
    return np.frombuffer(b"".join(parts), _STORED)


def _read_stored_times(metric: str, scenarios: Sequence[Sequence[ScenarioSums]]) -> tuple[ScenarioValues, ...]:
    return tuple({sums.scenario: _join_times([sums], metric) for sums in chosen} for chosen in scenarios)


def _build_row(
    row: MatrixRow,
    chosen: Sequence[ScenarioSums],
    times: ScenarioValues,
    varying: Sequence[str],
    *,
    is_limited: bool,
) -> LatencyRow:
    values = np.sort(np.concatenate([np.asarray(found, dtype=float) for found in times.values()]), kind="stable")
    counts = add_tallies(sums.tally for sums in chosen)
    settings = [row.settings[name] for name in varying if row.settings[name]]
    first_tokens = _join_times(chosen, "first_token")
    return LatencyRow(
        config_id=row.config_ids[0],
        name=row.name,
        model=row.model,
        provider=row.provider,
        note=" · ".join([row.profile, *settings]),
        local=row.local,
        times=values,
        summary=_summarize(values),
        scenarios={name: _summarize(times[name]) for name in sorted(times) if len(times[name])},
        first_token=compute_quantile(first_tokens, 0.5) if len(first_tokens) else None,
        counts=counts,
        trials_query=row.trials_query,
        is_partial=is_limited and len(values) < counts.answered > MAX_ANSWERS,
    )


def _summarize(times: Sequence[float] | np.ndarray) -> TimeSummary:
    return TimeSummary(*(compute_quantile(times, q) for q in (0.5, 0.95, 0.99)))
