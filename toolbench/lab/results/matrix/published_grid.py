"""Grid of a published snapshot. Cells and figures that it does not contain are "not published"."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from toolbench.evals.published import CONTROL_SCENARIO
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.metrics.values import Figure, MetricValue
from toolbench.lab.results.matrix.columns import RowColumn, choose_columns
from toolbench.lab.results.matrix.grid import choose_state, compute_tint
from toolbench.lab.results.matrix.grid_types import Grid, GridCell, GridColumn, GridRow
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.sorting import sort_rows
from toolbench.lab.results.matrix.table import Matrix, MatrixSummary
from toolbench.lab.results.published import PublishedMatrix, PublishedRow

NOT_PUBLISHED = "not published"
_METRIC = replace(METRICS["given"], label="Success, as published")
_NO_TALLY = Tally()


def build_published_grid(
    published: PublishedMatrix, query: MatrixQuery, rows: Sequence[PublishedRow]
) -> tuple[Matrix, Grid]:
    """Return a matrix without rows, which has the summary of the snapshot, and the snapshot's grid.

    Args:
        published: the snapshot.
        query: target, view, order and columns of the grid; its metric is ignored, since only success is published.
        rows: rows of the snapshot to show.
    """
    build = _build_profile_grid if query.view == "profile" else _build_scenario_grid
    columns = tuple(replace(column, missing=NOT_PUBLISHED) for column in choose_columns(query.layout.grid))
    grid = replace(build(published, query, rows, columns), row_columns=columns)
    return _build_matrix(published, query), replace(grid, rows=sort_rows(grid, query.sort))


def _build_matrix(published: PublishedMatrix, query: MatrixQuery) -> Matrix:
    summary = MatrixSummary(
        trials=published.overall.n,
        ranked=published.clear + published.undecided + published.below,
        clears=published.clear,
        undecided=published.undecided,
        below=published.below,
        overlapping=max(0, published.perfect - 1),
        control_success=published.control,
        infra=0,
    )
    timeouts = "Published timeouts count as failures, as in the publication."
    return Matrix(query, _METRIC, (), {}, (), summary, (), (), (timeouts,), ())


def _build_scenario_grid(
    published: PublishedMatrix, query: MatrixQuery, rows: Sequence[PublishedRow], columns: Sequence[RowColumn]
) -> Grid:
    totals = dict(published.scenarios)
    slugs = sorted(totals, key=lambda slug: (slug == CONTROL_SCENARIO, slug))
    heads = tuple(
        GridColumn(
            slug,
            slug.replace("_", " "),
            "Control" if slug == CONTROL_SCENARIO else "Tool scenarios",
            slug == CONTROL_SCENARIO,
            _compute_total(published, rows, slug),
        )
        for slug in slugs
    )
    built = []
    for row in rows:
        split = {**dict(row.split), CONTROL_SCENARIO: row.control}
        cells = tuple(
            _build_cell(
                published, query, split.get(slug), is_control=slug == CONTROL_SCENARIO, is_off=_is_off(row, slug)
            )
            for slug in slugs
        )
        built.append(_build_row(published, query, [row], cells, columns))
    return Grid("Model", heads, tuple(built), _compute_overall(published, rows))


def _build_profile_grid(
    published: PublishedMatrix, query: MatrixQuery, rows: Sequence[PublishedRow], columns: Sequence[RowColumn]
) -> Grid:
    profiles = sorted({row.profile for row in rows}, key=lambda profile: (profile != "default", profile))
    models: dict[str, list[PublishedRow]] = {}
    for row in rows:
        models.setdefault(row.model, []).append(row)
    heads = tuple(
        GridColumn(profile, profile, "", False, _add_rates(row.tool for row in rows if row.profile == profile))
        for profile in profiles
    )
    built = []
    for found in models.values():
        by_profile = {row.profile: row for row in found}
        cells = tuple(
            _build_cell(published, query, by_profile[profile].tool, is_off=by_profile[profile].not_applicable)
            if profile in by_profile
            else None
            for profile in profiles
        )
        built.append(_build_row(published, query, found, cells, columns))
    return Grid("Model", heads, tuple(built), _compute_overall(published, rows))


def _compute_total(published: PublishedMatrix, rows: Sequence[PublishedRow], slug: str) -> MetricValue:
    """Return the published total of a scenario; an unknown value if only some rows are shown."""
    return MetricValue(dict(published.scenarios)[slug] if len(rows) == len(published.rows) else None, None)


def _compute_overall(published: PublishedMatrix, rows: Sequence[PublishedRow]) -> MetricValue:
    """Return the published total of the tool scenarios, or the sum of the rows if only some are shown."""
    if len(rows) == len(published.rows):
        return MetricValue(published.tool, None)
    return _add_rates(row.tool for row in rows)


def _is_off(row: PublishedRow, slug: str) -> bool:
    return row.not_applicable and slug != CONTROL_SCENARIO


def _add_rates(rates: Iterable[Rate], target: int | None = None) -> MetricValue:
    found = tuple(rates)
    return MetricValue(build_rate(sum(rate.k for rate in found), sum(rate.n for rate in found), target=target), None)


def _build_row(
    published: PublishedMatrix,
    query: MatrixQuery,
    rows: Sequence[PublishedRow],
    cells: tuple[GridCell | None, ...],
    columns: Sequence[RowColumn],
) -> GridRow:
    """Return the row of one published row, or of all profiles of a model."""
    first = rows[0]
    overall = _add_rates((row.tool for row in rows), query.target).rate
    is_off = all(row.not_applicable for row in rows)
    return GridRow(
        key=first.key,
        label=first.name,
        title=first.model,
        note=first.profile if len(rows) == 1 else f"{len(rows)} profiles",
        is_repeated=first.repeats_model,
        overall=_build_cell(published, query, overall, is_off=is_off),
        cells=cells,
        tally=_NO_TALLY,
        figures=tuple((column, _find_figure(column, rows)) for column in columns),
    )


def _find_figure(column: RowColumn, rows: Sequence[PublishedRow]) -> MetricValue:
    """Return the value of a column: the control, or the p95 of a single row; an unknown value for other columns."""
    if column.name == "control":
        return _add_rates(row.control for row in rows)
    if column.name == "p95" and len(rows) == 1:
        return MetricValue(None, Figure(rows[0].p95_ms, rows[0].p95_ms, "ms"))
    return MetricValue(None, None)


def _build_cell(
    published: PublishedMatrix, query: MatrixQuery, rate: Rate | None, *, is_control: bool = False, is_off: bool = False
) -> GridCell:
    value = MetricValue(rate, None)
    if is_off or rate is None:
        return GridCell("na" if is_off else "unpublished", value, _NO_TALLY, "")
    tally = Tally(passed=rate.k, failed=rate.n - rate.k)
    state = choose_state(_METRIC, value, tally, is_control=is_control)
    target = None if is_control else query.target
    note = f"{rate.k} passed · {rate.n - rate.k} failed\nPublished {published.published}, not measured here"
    return GridCell(state, value, tally, "", compute_tint(value, target), note=note)
