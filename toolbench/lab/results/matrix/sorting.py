"""The order of the grid's rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from toolbench.lab.metrics.values import MetricValue
from toolbench.lab.results.matrix.grid_types import Grid, GridCell, GridRow


def sort_rows(grid: Grid, sort: str) -> Sequence[GridRow]:
    """Return the rows as `sort` asks: a shown column, with "-" in front of it for the smallest first.

    Rows without a value come last either way. Sorted rows each show their label.
    """
    name = sort.removeprefix("-")
    keys: Mapping[str, Callable[[GridRow], float | None]] = {
        "overall": lambda row: _rank_cell(row.overall),
        **{column.name: _get_figure_key(index) for index, column in enumerate(grid.row_columns)},
        **{column.key: _get_cell_key(index) for index, column in enumerate(grid.columns)},
    }
    if name not in keys:
        return grid.rows
    ranked = [(keys[name](row), row) for row in grid.rows]
    known = [(value, row) for value, row in ranked if value is not None]
    known.sort(key=lambda pair: pair[0], reverse=not sort.startswith("-"))
    unknown = [row for value, row in ranked if value is None]
    return tuple(replace(row, is_repeated=False) for row in (*(row for _, row in known), *unknown))


def _get_cell_key(index: int) -> Callable[[GridRow], float | None]:
    return lambda row: _rank_cell(row.cells[index])


def _get_figure_key(index: int) -> Callable[[GridRow], float | None]:
    return lambda row: _rank(row.figures[index][1])


def _rank_cell(cell: GridCell | None) -> float | None:
    """Return the number by which a cell is sorted; None without a value."""
    return None if cell is None or not cell.has_value else _rank(cell.value)


def _rank(value: MetricValue) -> float | None:
    """Return the number by which a value is sorted; None if it is unknown."""
    if value.rate:
        return value.rate.share if value.rate.n else None
    if value.quantile:
        return value.quantile.value
    return value.figure.low if value.figure else None
