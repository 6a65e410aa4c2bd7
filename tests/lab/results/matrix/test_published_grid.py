"""Grid of the published snapshot."""

import pytest
from django.http import QueryDict

from toolbench.lab import builtin_data
from toolbench.lab.results.matrix.grid_types import Grid
from toolbench.lab.results.matrix.published_grid import NOT_PUBLISHED, build_published_grid
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.published import get_published_matrix

pytestmark = pytest.mark.django_db


def read_grid(query: str = "") -> Grid:
    builtin_data.load_builtin_data()
    published = get_published_matrix(90)
    assert published is not None
    return build_published_grid(published, MatrixQuery.from_query(QueryDict(query)), published.rows)[1]


def test_published_grid_cell_is_the_published_split_or_unpublished() -> None:
    grid = read_grid()
    published = get_published_matrix(90)
    assert published is not None
    assert [column.key for column in grid.columns][-1] == "chat_only"
    for row, source in zip(grid.rows, published.rows, strict=True):
        for column, cell in zip(grid.columns[:-1], row.cells, strict=False):
            rate = dict(source.split)[column.key]
            assert cell is not None
            if source.not_applicable:
                assert cell.state == "na"
            elif rate is None:
                assert (cell.state, cell.rate) == ("unpublished", None)
            else:
                assert cell.rate == rate


def test_published_grid_column_without_figures_says_not_published() -> None:
    grid = read_grid("grid_column=p50,p95,p99,cost,control")
    known = {column.name for row in grid.rows for column, value in row.figures if value.is_known}
    assert known == {"p95", "control"}
    assert {column.missing for column in grid.row_columns} == {NOT_PUBLISHED}


def test_published_grid_shows_only_the_published_time_by_default() -> None:
    assert [column.name for column in read_grid().row_columns] == ["p95"]


def test_published_grid_row_has_short_profile_and_whole_name_in_title() -> None:
    rows = [row for row in read_grid().rows if row.label == "deepseek-v3.2"]
    assert [row.note for row in rows] == ["default", "creative_writing", "general_conversation", "local_recommended"]
    assert [row.is_repeated for row in rows] == [False, True, True, True]
    assert rows[1].title == "deepseek/deepseek-v3.2:nitro, deepseek_v3_2_creative_writing"
    assert rows[1].overall.profile == "deepseek_v3_2_creative_writing"


def test_published_grid_totals_equal_the_publication() -> None:
    grid = read_grid()
    assert grid.overall is not None
    assert grid.overall.rate is not None
    assert (grid.overall.rate.k, grid.overall.rate.n) == (1_002, 1_160)


def test_published_profile_grid_has_one_row_for_each_model() -> None:
    grid = read_grid("view=profile&sort=-overall")
    assert len({row.title for row in grid.rows}) == len(grid.rows) == 17
    assert grid.columns[0].key == "default"
    assert {column.group for column in grid.columns} == {"Sampling profile"}
    assert sum(cell is not None for row in grid.rows for cell in row.cells) == 29
    overall = [row.overall.rate.share for row in grid.rows if row.overall.has_value and row.overall.rate]
    assert overall == sorted(overall)


def test_published_summary_counts_every_row_that_overlaps_the_best() -> None:
    builtin_data.load_builtin_data()
    published = get_published_matrix(90)
    assert published is not None
    matrix, _ = build_published_grid(published, MatrixQuery(), published.rows)
    rates = [row.tool for row in published.rows if not row.not_applicable]
    best_low = max(rate.low for rate in rates)
    assert matrix.summary.overlapping == sum(rate.high >= best_low for rate in rates) - 1
    assert matrix.summary.overlapping > published.perfect
    assert matrix.summary.ranked + matrix.summary.not_applicable == len(published.rows)
