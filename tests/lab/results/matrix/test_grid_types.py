"""Shape of the grid, which decides how its heads stand and how wide its columns are."""

import pytest

from toolbench.lab.results.matrix.columns import ROW_COLUMNS
from toolbench.lab.results.matrix.grid_types import MAX_EVEN_COLUMNS, MAX_FLAT_COLUMNS, Grid, GridColumn

_ROW_COLUMNS = tuple(ROW_COLUMNS.values())


@pytest.mark.parametrize(
    ("column_count", "row_column_count", "shape"),
    [
        (1, 1, "even"),
        (MAX_EVEN_COLUMNS, 1, "even"),
        (MAX_EVEN_COLUMNS, 2, ""),
        (MAX_EVEN_COLUMNS + 1, 1, ""),
        (MAX_FLAT_COLUMNS, 5, ""),
        (MAX_FLAT_COLUMNS + 1, 1, "upright"),
    ],
)
def test_grid_shape_by_number_of_columns(column_count: int, row_column_count: int, shape: str) -> None:
    columns = tuple(GridColumn(f"s{index}", "", "", False, None) for index in range(column_count))
    assert Grid("Model", columns, (), None, _ROW_COLUMNS[:row_column_count]).shape == shape
