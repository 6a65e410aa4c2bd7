"""Sorting of the rows of the matrix grid."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from toolbench.lab.metrics.values import MetricValue
from toolbench.lab.results.matrix.grid_types import Grid, GridCell, GridRow


def sort_rows(grid: Grid, sort: str) -> Sequence[GridRow]:
    """Return the rows sorted by a column; unchanged if the grid has no such column.

    Rows without a value come last. In sorted rows, none is marked as repeated, so each shows its label.

    Args:
        grid: the grid.
        sort: "overall", a name of `grid.row_columns` or a key of `grid.columns`: the largest value comes first. With
            "-" before it, the smallest value comes first.
    """
    name = sort.removeprefix("-")
    keys: Mapping[str, Callable[[GridRow], float | None]] = {
        "overall": lambda row: _find_cell_sort_value(row.overall),
        **{column.name: _build_figure_key(index) for index, column in enumerate(grid.row_columns)},
        **{column.key: _build_cell_key(index) for index, column in enumerate(grid.columns)},
    }
    if name not in keys:
        return grid.rows
    values = [(keys[name](row), row) for row in grid.rows]
    valued_rows = [(value, row) for value, row in values if value is not None]
    valued_rows.sort(key=lambda pair: pair[0], reverse=not sort.startswith("-"))
    rows_without_value = [row for value, row in values if value is None]
    sorted_rows = (*(row for _, row in valued_rows), *rows_without_value)
    return tuple(replace(row, is_repeated=False) for row in sorted_rows)


def _build_cell_key(index: int) -> Callable[[GridRow], float | None]:
    return lambda row: _find_cell_sort_value(row.cells[index])


def _build_figure_key(index: int) -> Callable[[GridRow], float | None]:
    return lambda row: _find_sort_value(row.figures[index][1])


def _find_cell_sort_value(cell: GridCell | None) -> float | None:
    """Return the number by which a cell is sorted; None without a value."""
    return None if cell is None or not cell.has_value else _find_sort_value(cell.value)


def _find_sort_value(value: MetricValue) -> float | None:
    """Return the number by which a value is sorted; None if the value is unknown or a rate of no trials."""
    if value.rate:
        return value.rate.share if value.rate.n else None
    if value.quantile:
        return value.quantile.value
    return value.figure.low if value.figure else None
