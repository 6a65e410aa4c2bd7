"""The latency page: quantiles of the times of configurations, over all scenarios and by scenario."""

from collections import Counter
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
from toolbench.lab.results.latency.times import ScenarioTimes, read_times
from toolbench.lab.results.matrix.pooled_rows import SCENARIO_KEY, group_by_row
from toolbench.lab.results.matrix.rows import ROW_KEY, SETTING_FIELDS, MatrixRow, ScenarioSums, build_row
from toolbench.lab.results.matrix.table import sum_matrix_rows
from toolbench.lab.results.run_choices import list_run_choices

MAX_ROWS = 20  # configurations on a page
# Once a configuration has this many answers, no older run is read for times that are not stored with the cells.
MAX_ANSWERS = 500
_STORED_TYPE = np.dtype(">f8")  # of the times that are stored with the cells


@dataclass(frozen=True, slots=True)
class TimeSummary:
    """Quantiles of times in milliseconds, each an order statistic with 95 % bounds."""

    p50: Quantile
    p95: Quantile
    p99: Quantile

    @property
    def n(self) -> int:
        """Return the number of times."""
        return self.p50.n


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """Times of one configuration.

    Attributes:
        config_id: primary key of the oldest of the run configurations that the row sums.
        name: name of the model without the vendor before the last slash.
        note: the provider if several providers have a model of this name, the profile, and the values of the settings
            in which the rows differ.
        local: whether the model runs on this machine, so that decisions ignore its latency.
        times: milliseconds, ascending.
        summary: quantiles of all times.
        scenarios: quantiles by scenario, sorted by scenario.
        first_token: median milliseconds to the first token; None without streamed trials.
        counts: counts of the trials in the shown scenarios.
        trials_query: query string of the list of the trials.
        is_partial: whether times of older runs may be missing.
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
        """Return the name with its note."""
        return " · ".join(filter(None, (self.name, self.note)))


@dataclass(frozen=True, slots=True)
class LatencyPage:
    """A page of the latency of configurations.

    Attributes:
        runs: the runs to choose from.
        group: the shown scenario group; "" if there are none.
        groups: the scenario groups in scope, the default first and controls last.
        rows: the configurations of this page, the smallest p95 of the whole trial first.
        total: number of configurations with an answer on all pages; one without a time of the metric has no row.
        page: number of this page, from 1.
    """

    query: LatencyQuery
    runs: tuple[Run, ...]
    group: str
    groups: tuple[str, ...]
    rows: tuple[LatencyRow, ...]
    total: int
    page: int

    @property
    def pages(self) -> int:
        """Return the number of pages, at least 1."""
        return max(1, -(-self.total // MAX_ROWS))

    @property
    def simulated(self) -> bool:
        """Return whether all chosen runs are simulated; without chosen runs, whether the scope has simulated runs."""
        chosen = [run.simulated for run in self.runs if run.pk in self.query.runs]
        return all(chosen) if chosen else self.query.scope == "demo"

    @property
    def is_partial(self) -> bool:
        """Return whether times of older runs may be missing in any row."""
        return any(row.is_partial for row in self.rows)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Return all scenarios of the rows, sorted."""
        return tuple(sorted({scenario for row in self.rows for scenario in row.scenarios}))


@dataclass(frozen=True, slots=True)
class _GroupRows:
    """The matrix rows of a scope that have an answer in a scenario group.

    Attributes:
        groups: the scenario groups in scope.
        rows: the rows, the smallest p95 of the whole trial first.
    """

    group: str
    groups: tuple[str, ...]
    rows: tuple[MatrixRow, ...]


_group_rows: VersionCache[_GroupRows] = VersionCache(max_entries=8)
_pages: VersionCache[LatencyPage] = VersionCache(max_entries=8)


def get_latency(query: LatencyQuery, *, all_rows: bool = False) -> LatencyPage:
    """Return the latency page; only trials with an answer count.

    The number of SQL queries does not depend on the number of runs and trials. The page is kept in memory until a
    figure of a run in scope changes; it is not kept while a run in scope is in progress.

    Args:
        query: scope, metric and number of the page.
        all_rows: whether to put all configurations on one page and to read all their runs.
    """
    sums = sum_matrix_rows(query.matrix_query)
    key = (replace(query, by="", ignored=()), all_rows)
    page = _pages.get(sums.version, key, lambda: _build_page(query, sums.rows, sums.version, all_rows))
    run_choices = Run.objects.filter(query.run_condition | Q(pk__in=query.runs), deleted_at=None)
    return replace(page, query=query, runs=list_run_choices(run_choices, query.runs))


def _build_page(query: LatencyQuery, sum_rows: list[SumRow], version: UUID | None, all_rows: bool) -> LatencyPage:
    """Return the page without `runs`."""
    key = (query.matrix_query, query.group)
    group_rows = _group_rows.get(version, key, lambda: _build_group_rows(query, sum_rows))
    number = 1 if all_rows else max(1, min(query.page, -(-len(group_rows.rows) // MAX_ROWS)))
    shown_rows = group_rows.rows if all_rows else group_rows.rows[(number - 1) * MAX_ROWS : number * MAX_ROWS]
    scenarios = [_select_scenarios(row, group_rows.group) for row in shown_rows]
    is_stored = query.metric in STORED_METRICS
    is_limited = not is_stored and not all_rows
    if is_stored:
        times = _list_stored_times(query.metric, scenarios)
    else:
        keys = [frozenset((sums.scenario, sums.version) for sums in row_scenarios) for row_scenarios in scenarios]
        times = read_times(shown_rows, keys, query.metric, max_answers=MAX_ANSWERS if is_limited else None)
    varying_settings = [name for name in SETTING_FIELDS if len({row.settings[name] for row in group_rows.rows}) > 1]
    providers_by_name = Counter(name for name, _ in {(row.name, row.provider) for row in group_rows.rows})
    rows = (
        _build_row(
            row,
            row_scenarios,
            row_times,
            [
                row.provider if providers_by_name[row.name] > 1 else "",
                row.profile,
                *(row.setting_labels[name] for name in varying_settings),
            ],
            is_limited=is_limited,
        )
        for row, row_scenarios, row_times in zip(shown_rows, scenarios, times, strict=True)
        if any(map(len, row_times.values()))
    )
    return LatencyPage(query, (), group_rows.group, group_rows.groups, tuple(rows), len(group_rows.rows), number)


def _build_group_rows(query: LatencyQuery, sum_rows: list[SumRow]) -> _GroupRows:
    """Return the rows with an answer in the scenario group of the query.

    If the group is not in scope, the first group in scope is used, which is the default group if that is in scope.
    """
    merged = merge_rows(sum_rows, (*ROW_KEY, *SCENARIO_KEY))
    group_names = {row["scenario_group"] for row in merged}
    groups = tuple(sorted(group_names, key=lambda name: (name == CONTROL_GROUP, build_group_sort_key(name))))
    group = query.group if query.group in groups else "".join(groups[:1])
    rows = (build_row(config_rows, query.matrix_query, group, {}) for config_rows in group_by_row(merged))
    ranked = [(_find_p95_ms(row, group), row) for row in rows if row is not None]
    answered = sorted((pair for pair in ranked if pair[0] is not None), key=lambda pair: (pair[0], pair[1].key))
    return _GroupRows(group, groups, tuple(row for _, row in answered))


def _find_p95_ms(row: MatrixRow, group: str) -> float | None:
    """Return the p95 of the durations of whole trials in milliseconds; None without an answer."""
    p95 = row.times.p95  # without controls
    if group == CONTROL_GROUP:
        times = _join_stored_times(_select_scenarios(row, group), "trial")
        p95 = compute_quantile(times, 0.95) if len(times) else None
    return p95.value if p95 else None


def _select_scenarios(row: MatrixRow, group: str) -> tuple[ScenarioSums, ...]:
    """Return the controls of the row if `group` is CONTROL_GROUP, else its other scenarios."""
    return tuple(sums for sums in row.scenarios if sums.control == (group == CONTROL_GROUP))


def _join_stored_times(scenarios: Sequence[ScenarioSums], metric: str) -> np.ndarray:
    """Return the milliseconds of a metric of STORED_METRICS over all these scenarios."""
    parts = [sums.times.durations if metric == "trial" else sums.times.first_tokens for sums in scenarios]
    return np.frombuffer(b"".join(parts), _STORED_TYPE)


def _list_stored_times(metric: str, scenarios: Sequence[Sequence[ScenarioSums]]) -> tuple[ScenarioTimes, ...]:
    """Return the milliseconds of each row by scenario.

    Args:
        metric: one of STORED_METRICS.
        scenarios: the scenarios of each row.
    """
    return tuple(
        {sums.scenario: _join_stored_times([sums], metric) for sums in row_scenarios} for row_scenarios in scenarios
    )


def _build_row(
    row: MatrixRow,
    scenarios: Sequence[ScenarioSums],
    times: ScenarioTimes,
    notes: Sequence[str],
    *,
    is_limited: bool,
) -> LatencyRow:
    """Return the row of a configuration.

    Args:
        row: its row of the matrix.
        scenarios: its sums in the shown group.
        times: its milliseconds by scenario, at least one.
        notes: the parts of `LatencyRow.note`; blank ones are left out.
        is_limited: whether older runs were not read after MAX_ANSWERS answers.
    """
    all_times = np.sort(np.concatenate([np.asarray(values, dtype=float) for values in times.values()]), kind="stable")
    counts = add_tallies(sums.tally for sums in scenarios)
    first_tokens = _join_stored_times(scenarios, "first_token")
    return LatencyRow(
        config_id=row.config_ids[0],
        name=row.name,
        model=row.model,
        provider=row.provider,
        note=" · ".join(filter(None, notes)),
        local=row.local,
        times=all_times,
        summary=_summarize(all_times),
        scenarios={name: _summarize(times[name]) for name in sorted(times) if len(times[name])},
        first_token=compute_quantile(first_tokens, 0.5) if len(first_tokens) else None,
        counts=counts,
        trials_query=row.trials_query,
        is_partial=is_limited and counts.answered > max(MAX_ANSWERS, len(all_times)),
    )


def _summarize(times: Sequence[float] | np.ndarray) -> TimeSummary:
    """Return the quantiles of times in milliseconds, of which there must be at least one."""
    return TimeSummary(*(compute_quantile(times, q) for q in (0.5, 0.95, 0.99)))
