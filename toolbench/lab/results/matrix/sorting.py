"""Sorting of the rows of the matrix grid."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from toolbench.lab.metrics.values import MetricValue
from toolbench.lab.results.matrix.columns import ROW_COLUMNS
from toolbench.lab.results.matrix.grid_types import Grid, GridCell, GridRow


def sort_grid(grid: Grid, sort: str) -> Grid:
    """Return the grid with its rows sorted by a column; unchanged if there is no such column.

    Rows without a value come last. No row of a sorted grid is marked as repeated, so each shows its label.

    Args:
        grid: the grid. The figures of its rows begin with those of `grid.row_columns`. Further figures only serve for
            sorting; the rows of a sorted grid lack them.
        sort: "overall", a name of ROW_COLUMNS, or a key or an alias of `grid.columns`: the largest value comes first.
            With "-" before it, the smallest value comes first.
    """
    name, sign = sort.removeprefix("-"), "-" if sort.startswith("-") else ""
    sort_keys: Mapping[str, Callable[[GridRow], float | None]] = {
        "overall": lambda row: _find_cell_sort_value(row.overall),
        **{column_name: _build_figure_key(column_name) for column_name in ROW_COLUMNS},
        **{column.key: _build_cell_key(index) for index, column in enumerate(grid.columns)},
    }
    if name not in sort_keys:
        name = next((column.key for column in grid.columns if name in column.aliases), "")
    if not name:
        return grid
    pairs = [(sort_keys[name](row), row) for row in grid.rows]
    valued_pairs = [(value, row) for value, row in pairs if value is not None]
    valued_pairs.sort(key=lambda pair: pair[0], reverse=not sign)
    rows_without_value = [row for value, row in pairs if value is None]
    shown_count = len(grid.row_columns)
    sorted_rows = tuple(
        replace(row, is_repeated=False, figures=row.figures[:shown_count])
        for row in (*(row for _, row in valued_pairs), *rows_without_value)
    )
    return replace(grid, rows=sorted_rows, sort=sign + name)


def _build_cell_key(index: int) -> Callable[[GridRow], float | None]:
    return lambda row: _find_cell_sort_value(row.cells[index])


def _build_figure_key(name: str) -> Callable[[GridRow], float | None]:
    return lambda row: next((_find_sort_value(value) for column, value in row.figures if column.name == name), None)


def _find_cell_sort_value(cell: GridCell | None) -> float | None:
    """Return the number by which a cell is sorted; None without a cell or a value."""
    return None if cell is None or not cell.has_value else _find_sort_value(cell.value)


def _find_sort_value(value: MetricValue) -> float | None:
    """Return the number by which a value is sorted, the lower end of a range.

    The number is None if the value is unknown or a rate with the denominator 0.
    """
    if value.rate:
        return value.rate.share if value.rate.n else None
    if value.quantile:
        return value.quantile.value
    return value.figure.low if value.figure else None
