"""Grid of the matrix: cells of model × scenario, model × profile or scenario × strategy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from toolbench.lab.metrics.tally import Tally, add_tallies
from toolbench.lab.metrics.times import Times, merge_times
from toolbench.lab.metrics.values import Metric, MetricInput, MetricValue, compute_metric
from toolbench.lab.metrics.version_cache import VersionCache
from toolbench.lab.results.matrix.causes import CauseCounts, count_causes
from toolbench.lab.results.matrix.columns import choose_columns, compute_column_value, list_hidden_columns
from toolbench.lab.results.matrix.grid_totals import (
    NO_TALLY,
    choose_metric,
    compute_row_total,
    compute_scenario_total,
    group_by_scenario,
    pool_profiles,
)
from toolbench.lab.results.matrix.grid_types import MAX_PAGE_ROWS, Grid, GridCell, GridColumn, GridRow, LazyRows
from toolbench.lab.results.matrix.profile_columns import ModelProfile, build_profile_columns, shorten_profiles
from toolbench.lab.results.matrix.query import SPLIT_BY_PROMPT, MatrixQuery
from toolbench.lab.results.matrix.rows import MatrixRow, ScenarioSums, label_setting
from toolbench.lab.results.matrix.sorting import sort_grid
from toolbench.lab.results.matrix.table import Matrix, NewestVersions, find_newest_versions
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.scenarios.catalogue import ScenarioKey

MIN_ANSWERS = 5  # a cell with fewer answers is not compared with the target
MAX_TINT_PERCENT = 60  # tint of a cell whose share is 0
MAX_CAUSE_TRIALS = 20_000  # of one page; counting their causes takes about 10 ms for 1,000 trials

_grids: VersionCache[Grid] = VersionCache(max_entries=8)
_causes: VersionCache[CauseCounts] = VersionCache(max_entries=8)


@dataclass(frozen=True, slots=True)
class _Source:
    """Counts and times from which a row or a cell is computed, and the link to its trials.

    Attributes:
        trials_query: query string that selects the trials; "" if none does.
        is_control: whether the counted scenarios are controls.
        times: times of the trials with an answer.
        config_ids: primary keys of the configurations.
        scenarios: the scenarios with their versions.
        profile: the profile; "" for several.
    """

    metric_input: MetricInput
    trials_query: str
    is_control: bool
    times: Times
    config_ids: tuple[int, ...]
    scenarios: tuple[ScenarioKey, ...]
    profile: str = ""


def get_grid(matrix: Matrix, page: int = 1, page_rows: int = MAX_PAGE_ROWS) -> Grid:
    """Return a page of the grid of a matrix, without an SQL query.

    Args:
        matrix: the matrix.
        page: number of the page, from 1; a greater number than that of the last page stands for the last page.
        page_rows: maximum number of rows on a page.
    """
    grid = replace(_grids.get(matrix.version, matrix.query, lambda: build_grid(matrix)), page_rows=page_rows)
    return replace(grid, page=max(1, min(page, grid.pages)))


def get_grid_with_causes(matrix: Matrix, page: int = 1, page_rows: int = MAX_PAGE_ROWS) -> Grid:
    """Return a page as `get_grid` does, with the causes of its failed trials.

    The function sends one SQL query if the causes are not cached. If the page counts more than MAX_CAUSE_TRIALS trials,
    no causes are read, so that the page stays fast.
    """
    grid = get_grid(matrix, page, page_rows)
    cells = [cell for row in grid.shown_rows for cell in row.cells if cell]
    if sum(cell.tally.trial_count for cell in cells) > MAX_CAUSE_TRIALS:
        return grid
    ids = tuple(sorted({pk for cell in cells for pk in cell.config_ids}))
    slugs = tuple(sorted({slug for cell in cells for slug, _ in cell.scenarios}))
    return replace(grid, causes=_causes.get(matrix.version, (ids, slugs), lambda: count_causes(ids, slugs)))


def build_grid(matrix: Matrix) -> Grid:
    """Return the grid of a matrix, with the rows, columns and order that its query chooses."""
    builders = {"profile": _build_profile_grid, "strategy": _build_strategy_grid}
    grid = builders.get(matrix.query.view, _build_scenario_grid)(matrix)
    return sort_grid(replace(grid, row_columns=choose_columns(matrix.query.layout.grid)), matrix.query.sort)


def _build_scenario_grid(matrix: Matrix) -> Grid:
    sums = {(row.key, scenario.scenario): scenario for row in matrix.rows for scenario in row.scenarios}
    is_control = {scenario.scenario: scenario.control for scenario in sums.values()}
    slugs = sorted(is_control, key=lambda slug: (is_control[slug], slug))
    newest, pairs_by_slug = find_newest_versions(matrix.rows), group_by_scenario(matrix.rows)
    short_names = _shorten_profiles(matrix)
    rows = LazyRows([partial(_build_scenario_row, matrix, row, slugs, short_names) for row in matrix.rows])
    columns = [
        GridColumn(
            slug,
            slug.replace("_", " "),
            "Control" if is_control[slug] else "Tool scenarios",
            is_control[slug],
            compute_scenario_total(matrix, newest, pairs_by_slug[slug], is_control=is_control[slug]),
        )
        for slug in slugs
    ]
    return Grid("Model", tuple(columns), rows, compute_row_total(matrix, newest, matrix.rows))


def _shorten_profiles(matrix: Matrix) -> Mapping[ModelProfile, str]:
    return shorten_profiles((row.name, row.profile) for row in matrix.rows)


def _build_scenario_row(
    matrix: Matrix, row: MatrixRow, slugs: Sequence[str], short_names: Mapping[ModelProfile, str]
) -> GridRow:
    row_query = row.scenario_filter.query()  # built once: building one for each cell takes time
    sums = {scenario.scenario: scenario for scenario in row.scenarios}
    sources = [_build_scenario_source(row, row_query, sums.get(slug)) for slug in slugs]
    return _build_model_row(matrix, row, sources, short_names)


def _build_profile_grid(matrix: Matrix) -> Grid:
    """Return a grid with one row for each model and combination of settings.

    A cell is one profile over all tool scenarios, or over all controls if the metric covers only these.
    """
    short_names, of_control = _shorten_profiles(matrix), matrix.metric.of_control
    columns = build_profile_columns(short_names)
    rows = []
    for group in _group_rows(matrix.rows, _build_model_key):
        by_profile = {short_names[row.name, row.profile]: row for row in group}
        profile_rows = [by_profile.get(column.key) for column in columns]
        sources = [_build_source(row, is_control=of_control) if row else None for row in profile_rows]
        rows.append(_build_model_row(matrix, pool_profiles(group, of_control=of_control), sources, short_names))
    newest = find_newest_versions(matrix.rows)
    rows_by_profile: dict[str, list[MatrixRow]] = {}
    for row in matrix.rows:
        rows_by_profile.setdefault(short_names[row.name, row.profile], []).append(row)
    columns = tuple(_add_total(matrix, newest, column, rows_by_profile[column.key]) for column in columns)
    overall = compute_row_total(matrix, newest, matrix.rows)
    return Grid("Model", columns, tuple(rows), overall)


def _build_strategy_grid(matrix: Matrix) -> Grid:
    """Return a grid with one row for each scenario and kind of instance.

    A cell is one strategy over all models.
    """
    strategies = sorted({row.settings["strategy"] for row in matrix.rows})
    newest = find_newest_versions(matrix.rows)
    is_control = {
        (sums.scenario, row.settings["instance_kind"]): sums.control for row in matrix.rows for sums in row.scenarios
    }
    has_several_kinds = len({kind for _, kind in is_control}) > 1
    rows = []
    for slug, kind in sorted(is_control, key=lambda key: (is_control[key], key)):
        pool = partial(_pool_scenario, matrix.query, slug, newest.get((kind, slug)))
        rows_of_kind = [row for row in matrix.rows if row.settings["instance_kind"] == kind]
        kind_filter = kind if has_several_kinds else ""
        sources = [
            pool([row for row in rows_of_kind if row.settings["strategy"] == strategy], strategy, kind_filter)
            for strategy in strategies
        ]
        overall = pool(rows_of_kind, "", kind_filter)
        assert overall is not None
        kind_label = label_setting("instance_kind", kind)
        notes = ["control" if is_control[slug, kind] else "", kind_label if has_several_kinds else ""]
        rows.append(_build_row(matrix, overall, sources, label=slug, note=" · ".join(filter(None, notes))))
    columns = tuple(
        _add_total(
            matrix,
            newest,
            GridColumn(strategy, strategy, "Strategy", False, None),
            (row for row in matrix.rows if row.settings["strategy"] == strategy),
        )
        for strategy in strategies
    )
    total = compute_row_total(matrix, newest, matrix.rows)
    return Grid("Scenario", columns, tuple(rows), total)


def _build_model_key(row: MatrixRow) -> tuple[object, ...]:
    """Return what rows that differ only in their profile have in common."""
    return (row.provider, row.trial_filter.provider_kind, row.model, *row.settings.values(), row.prompt)


def _group_rows(rows: Iterable[MatrixRow], key: Callable[[MatrixRow], object]) -> list[list[MatrixRow]]:
    groups: dict[object, list[MatrixRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def _pool_scenario(
    query: MatrixQuery, slug: str, newest: int | None, rows: Sequence[MatrixRow], strategy: str, kind: str
) -> _Source | None:
    """Return the source for the newest version of a scenario over rows; None if no row has this version.

    If `query.q` is set, the source has no link, since the trial list cannot be filtered by a part of a name.

    Args:
        query: the query of the matrix.
        slug: the scenario.
        newest: its newest version with finished trials. If it is None, since no version has any, the newest version of
            the rows is used.
        rows: rows with the same kind of instance.
        strategy: the strategy that the link selects; "" for any.
        kind: the kind of instance that the link selects; "" for any.
    """
    scenarios = [sums for row in rows for sums in row.scenarios if sums.scenario == slug]
    config_ids = tuple(chain.from_iterable(row.config_ids for row in rows))  # chained, since there may be thousands
    version = max((sums.version for sums in scenarios), default=0) if newest is None else newest
    newest_sums = [sums for sums in scenarios if sums.version == version]
    if not newest_sums:
        return None
    first = rows[0].trial_filter
    trial_filter = TrialFilter(
        runs=first.runs,
        scenario=slug,
        version=version,
        strategy=strategy,
        instance_kind=kind,
        demo=first.demo,
        imported=first.imported,
        prompt="" if query.prompt == SPLIT_BY_PROMPT else query.prompt,
        chosen=replace(query.chosen, scenarios=(), strategies=() if strategy else query.chosen.strategies),
    )
    metric_input = _build_scenario_input(newest_sums)
    return _Source(
        metric_input,
        "" if query.q else trial_filter.query(),
        newest_sums[0].control,
        metric_input.pooled_times,
        config_ids,
        ((slug, version),),
    )


def _build_scenario_input(scenario_sums: Sequence[ScenarioSums]) -> MetricInput:
    """Return the input of a metric for sums of one scenario.

    The counts of a control are in `control` and in `tools`, since most metrics read `tools`.
    """
    tally = scenario_sums[0].tally if len(scenario_sums) == 1 else add_tallies(sums.tally for sums in scenario_sums)
    control = tally if scenario_sums[0].control else NO_TALLY
    return MetricInput(tally, control, (tally,), tuple(sums.times for sums in scenario_sums))


def _build_scenario_source(row: MatrixRow, row_query: str, sums: ScenarioSums | None) -> _Source | None:
    if sums is None:
        return None
    trials_query, key = f"{row_query}&scenario={sums.scenario}", (sums.scenario, sums.version)
    metric_input, profile = _build_scenario_input([sums]), row.trial_filter.profile
    return _Source(metric_input, trials_query, sums.control, sums.times, row.config_ids, (key,), profile)


def _build_source(row: MatrixRow, *, is_control: bool = False) -> _Source:
    """Return the source of a whole row: for its controls if `is_control`, else for its tool scenarios."""
    keys = tuple({(sums.scenario, sums.version): None for sums in row.scenarios if sums.control == is_control})
    times = merge_times(sums.times for sums in row.scenarios if sums.control) if is_control else row.times
    profile = row.trial_filter.profile
    return _Source(row.metric_input, row.trials_query, is_control, times, row.config_ids, keys, profile)


def _build_model_row(
    matrix: Matrix, row: MatrixRow, sources: Sequence[_Source | None], short_names: Mapping[ModelProfile, str]
) -> GridRow:
    labels = row.setting_labels
    differing_settings = [labels[name] for name in matrix.differing_settings if labels[name]]
    prompt = [f"prompts {row.prompt or 'of no known version'}"] if row.prompt is not None else []
    applies_by_note = {
        row.provider: len(matrix.rows_by_provider) > 1,
        "simulated": row.simulated and not matrix.is_all_simulated,  # else the page says it once
        f"scenario version {', '.join(map(str, row.versions))}": bool(row.versions),
        "not ranked": bool(row.outdated),
        "mixed upstreams": row.mixed_upstreams,
        f"{', '.join(row.differing)} differ": bool(row.differing),
    }
    notes = [note for note, applies in applies_by_note.items() if applies]
    source = _build_source(row, is_control=matrix.metric.of_control)
    grid_row = _build_row(
        matrix,
        source,
        sources,
        label=row.name,
        note=" · ".join([short_names.get((row.name, row.profile), row.profile), *differing_settings, *prompt, *notes]),
        key=row.key,
    )
    title = f"{row.model} at {row.provider}, {row.profile}"
    return replace(grid_row, title=title, is_repeated=row.repeats_model)


def _build_row(
    matrix: Matrix, source: _Source, sources: Sequence[_Source | None], *, label: str, note: str, key: str = ""
) -> GridRow:
    cells = tuple(_build_cell(matrix, cell_source) if cell_source else None for cell_source in sources)
    shown_columns = choose_columns(matrix.query.layout.grid)
    columns = (*shown_columns, *list_hidden_columns(shown_columns, matrix.query.sort))
    return GridRow(
        key=key,
        label=label,
        title=label,
        note=note,
        is_repeated=False,
        overall=_build_cell(matrix, source),
        cells=cells,
        tally=source.metric_input.tools,
        figures=tuple((column, compute_column_value(column, source.metric_input, source.times)) for column in columns),
    )


def _build_cell(matrix: Matrix, source: _Source) -> GridCell:
    target = None if source.is_control else float(matrix.query.target)
    metric = choose_metric(matrix.metric, is_control=source.is_control)
    value = compute_metric(metric, source.metric_input, target=target)
    tally = source.metric_input.control if metric.of_control else source.metric_input.tools
    return GridCell(
        choose_state(metric, value, tally, is_control=source.is_control),
        value,
        tally,
        source.trials_query,
        compute_tint(value, target),
        times=source.times,
        config_ids=source.config_ids,
        scenarios=source.scenarios,
        profile=source.profile,
    )


def compute_tint(value: MetricValue, target: float | None) -> int:
    """Return the strength of the tint of a value in percent, from 0 to MAX_TINT_PERCENT.

    It is 0 unless the whole interval lies below the target.

    Args:
        value: the value.
        target: target in percent; None for no target.
    """
    rate = value.rate
    if rate is None or not rate.n or not target or rate.target_status != "below":
        return 0
    return max(0, round(MAX_TINT_PERCENT * (target - 100 * rate.share) / target))


def choose_state(metric: Metric, value: MetricValue, tally: Tally, *, is_control: bool) -> str:
    """Return the state of a cell, one of those that `GridCell.state` can have.

    Args:
        metric: the metric of the grid.
        value: the value of the cell.
        tally: counts of the cell's trials.
        is_control: whether the cell counts a control, which is never compared with a target.
    """
    if tally.not_applicable and tally.not_applicable == tally.ended:
        return "na"
    rate = value.rate
    if not (rate.n if rate else value.is_known):
        return "waiting" if tally.queued or tally.running or not tally.ended else "unknown"
    if is_control:
        return "control"
    if not metric.judged or rate is None:
        return "plain"
    if rate.n < MIN_ANSWERS:
        return "few"
    if rate.target_status == "open" and rate.k == rate.n and not rate.withheld:
        return "clean"
    return rate.target_status


def _add_total(matrix: Matrix, newest: NewestVersions, column: GridColumn, rows: Iterable[MatrixRow]) -> GridColumn:
    return replace(column, total=compute_row_total(matrix, newest, rows))
