"""Grid of the published matrix, in which cells and figures that the publication lacks are "not published"."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from toolbench.evals.published import CONTROL_SCENARIO
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.metrics.values import Figure, MetricValue
from toolbench.lab.results.matrix.columns import RowColumn, choose_columns, list_hidden_columns
from toolbench.lab.results.matrix.grid import choose_state, compute_tint
from toolbench.lab.results.matrix.grid_types import Grid, GridCell, GridColumn, GridRow
from toolbench.lab.results.matrix.profile_columns import ModelProfile, build_profile_columns, shorten_profiles
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.sorting import sort_grid
from toolbench.lab.results.matrix.table import Matrix, MatrixSummary, count_overlapping
from toolbench.lab.results.published import PublishedMatrix, PublishedRow

NOT_PUBLISHED = "not published"
PUBLISHED_COLUMNS = ("p95",)  # shown unless columns are chosen
_METRIC = replace(METRICS["given"], label="Success, as published")
_NO_TALLY = Tally()


def build_published_grid(
    published: PublishedMatrix, query: MatrixQuery, rows: Sequence[PublishedRow]
) -> tuple[Matrix, Grid]:
    """Return the summary of the published matrix, as a `Matrix` without rows, and its grid.

    Args:
        published: the published matrix.
        query: target, view, order and columns of the grid; its metric is ignored, since only success is published.
        rows: rows of the published matrix to show.
    """
    build = _build_profile_grid if query.view == "profile" else _build_scenario_grid
    chosen_columns = choose_columns(query.layout.grid or PUBLISHED_COLUMNS)
    columns = tuple(replace(column, missing=NOT_PUBLISHED) for column in chosen_columns)
    row_columns = (*columns, *list_hidden_columns(columns, query.sort))
    short_names = shorten_profiles((row.name, row.profile) for row in rows)
    grid = replace(build(published, query, rows, row_columns, short_names), row_columns=columns)
    return _build_matrix(published, query), sort_grid(grid, query.sort)


def _build_matrix(published: PublishedMatrix, query: MatrixQuery) -> Matrix:
    summary = MatrixSummary(
        trials=published.overall.n,
        ranked=published.clear + published.undecided + published.below,
        clears=published.clear,
        undecided=published.undecided,
        below=published.below,
        overlapping=count_overlapping([row.tool for row in published.rows if not row.not_applicable]),
        control_success=published.control,
        infra=0,
        not_applicable=sum(row.not_applicable for row in published.rows),
    )
    warning = "Timeouts count as failures, as published. p50, retries, tokens and cost were not published."
    return Matrix(
        query=query,
        metric=_METRIC,
        rows_by_provider=(),
        common_settings={},
        differing_settings=(),
        summary=summary,
        scenario_groups=(),
        runs=(),
        warnings=(warning,),
        prompts=(),
    )


def _build_scenario_grid(
    published: PublishedMatrix,
    query: MatrixQuery,
    rows: Sequence[PublishedRow],
    columns: Sequence[RowColumn],
    short_names: Mapping[ModelProfile, str],
) -> Grid:
    totals = dict(published.scenarios)
    slugs = sorted(totals, key=lambda slug: (slug == CONTROL_SCENARIO, slug))
    grid_columns = tuple(
        GridColumn(
            slug,
            slug.replace("_", " "),
            "Control" if slug == CONTROL_SCENARIO else "Tool scenarios",
            slug == CONTROL_SCENARIO,
            _compute_total(published, rows, slug),
        )
        for slug in slugs
    )
    grid_rows = []
    for row in rows:
        rates = {**dict(row.split), CONTROL_SCENARIO: row.control}
        cells = tuple(
            _build_cell(
                published,
                query,
                rates.get(slug),
                is_control=slug == CONTROL_SCENARIO,
                is_not_applicable=row.not_applicable and slug != CONTROL_SCENARIO,
                profile=row.profile,
            )
            for slug in slugs
        )
        grid_rows.append(_build_row(published, query, [row], cells, columns, short_names))
    return Grid("Model", grid_columns, tuple(grid_rows), _compute_overall(published, rows))


def _build_profile_grid(
    published: PublishedMatrix,
    query: MatrixQuery,
    rows: Sequence[PublishedRow],
    columns: Sequence[RowColumn],
    short_names: Mapping[ModelProfile, str],
) -> Grid:
    rows_by_model: dict[str, list[PublishedRow]] = {}
    rows_by_profile: dict[str, list[PublishedRow]] = {}
    for row in rows:
        rows_by_model.setdefault(row.model, []).append(row)
        rows_by_profile.setdefault(short_names[row.name, row.profile], []).append(row)
    grid_columns = tuple(
        replace(column, total=_add_rates(row.tool for row in rows_by_profile[column.key]))
        for column in build_profile_columns(short_names)
    )
    grid_rows = []
    for model_rows in rows_by_model.values():
        by_profile = {short_names[row.name, row.profile]: row for row in model_rows}
        cells = tuple(
            _build_cell(published, query, row.tool, is_not_applicable=row.not_applicable, profile=row.profile)
            if row
            else None
            for row in (by_profile.get(column.key) for column in grid_columns)
        )
        grid_rows.append(_build_row(published, query, model_rows, cells, columns, short_names))
    return Grid("Model", grid_columns, tuple(grid_rows), _compute_overall(published, rows))


def _compute_total(published: PublishedMatrix, rows: Sequence[PublishedRow], slug: str) -> MetricValue:
    """Return the published total of a scenario; an unknown value if only some rows are shown."""
    return MetricValue(dict(published.scenarios)[slug] if len(rows) == len(published.rows) else None, None)


def _compute_overall(published: PublishedMatrix, rows: Sequence[PublishedRow]) -> MetricValue:
    """Return the published total of the tool scenarios, or the sum of the rows if only some are shown."""
    if len(rows) == len(published.rows):
        return MetricValue(published.tool, None)
    return _add_rates(row.tool for row in rows)


def _add_rates(rates: Iterable[Rate], target: int | None = None) -> MetricValue:
    """Return the rate with the added numerators and denominators of these rates; `target` is in percent."""
    rates = tuple(rates)
    return MetricValue(build_rate(sum(rate.k for rate in rates), sum(rate.n for rate in rates), target=target), None)


def _build_row(
    published: PublishedMatrix,
    query: MatrixQuery,
    rows: Sequence[PublishedRow],
    cells: tuple[GridCell | None, ...],
    columns: Sequence[RowColumn],
    short_names: Mapping[ModelProfile, str],
) -> GridRow:
    """Return the grid row for one published row, or for the published rows of all profiles of a model."""
    first = rows[0]
    profile = first.profile if len(rows) == 1 else ""
    shown_profile = profile or f"{len(rows)} profiles"
    overall = _add_rates((row.tool for row in rows), query.target).rate
    is_not_applicable = all(row.not_applicable for row in rows)
    return GridRow(
        key=first.key,
        label=first.name,
        title=f"{first.model}, {shown_profile}",
        note=short_names.get((first.name, profile), shown_profile),
        is_repeated=first.repeats_model,
        overall=_build_cell(published, query, overall, is_not_applicable=is_not_applicable, profile=profile),
        cells=cells,
        tally=_NO_TALLY,
        figures=tuple((column, _build_column_value(column, rows)) for column in columns),
    )


def _build_column_value(column: RowColumn, rows: Sequence[PublishedRow]) -> MetricValue:
    """Return the value of a column after the cells; an unknown value if it was not published.

    The success of the control was published, and the p95 of each row, but no p95 over several rows.
    """
    if column.name == "control":
        return _add_rates(row.control for row in rows)
    if column.name == "p95" and len(rows) == 1:
        return MetricValue(None, Figure(rows[0].p95_ms, rows[0].p95_ms, "ms"))
    return MetricValue(None, None)


def _build_cell(
    published: PublishedMatrix,
    query: MatrixQuery,
    rate: Rate | None,
    *,
    is_control: bool = False,
    is_not_applicable: bool = False,
    profile: str,
) -> GridCell:
    value = MetricValue(rate, None)
    if is_not_applicable or rate is None:
        return GridCell("na" if is_not_applicable else "unpublished", value, _NO_TALLY, "")
    tally = Tally(passed=rate.k, failed=rate.n - rate.k)
    state = choose_state(_METRIC, value, tally, is_control=is_control)
    target = None if is_control else query.target
    note = f"{rate.k} passed · {rate.n - rate.k} failed\nPublished {published.published}, not measured here"
    return GridCell(state, value, tally, "", compute_tint(value, target), profile=profile, note=note)
