"""Cells of the matrix as HTML."""

import pytest

from toolbench.lab.metrics.rate import build_rate
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.metrics.values import Figure, MetricValue
from toolbench.lab.results.matrix.columns import RowColumn
from toolbench.lab.results.matrix.grid_types import GridCell, GridRow
from toolbench.web.templatetags.grid import figure_cells, grid_cells

NO_VALUE = MetricValue(None, None, None)
RATE_CELL = GridCell(
    "open", MetricValue(build_rate(9, 10), None, None), Tally(passed=9, failed=1, infra=2), "model=a&x=<b>"
)


@pytest.mark.parametrize(
    ("cell", "html"),
    [
        (None, '<td class="c off"></td>'),
        (GridCell("na", NO_VALUE, Tally(), ""), '<td class="c off na"></td>'),
        (
            GridCell("unpublished", NO_VALUE, Tally(), ""),
            '<td class="c unpublished" title="not published"><small>not pub&shy;lished</small></td>',
        ),
    ],
)
def test_grid_cells_without_value_have_no_link(cell: GridCell | None, html: str) -> None:
    assert grid_cells([cell], 1, "/trials/", {}) == html


def test_grid_cells_link_to_trials_with_escaped_query() -> None:
    html = grid_cells([None, RATE_CELL], 3, "/trials/", {})
    assert 'id="cell-3-2" href="/trials/?model=a&amp;x=&lt;b&gt;" data-count="12"' in html
    assert '<b>9</b><i>/10</i><small class="mark infra">2</small></a></td>' in html
    assert 'title="9/10' in html


def test_grid_cells_without_query_can_be_focused() -> None:
    cell = GridCell("plain", MetricValue(None, Figure(3, 3, "tokens"), None), Tally(), "", note="a <note>")
    html = grid_cells([cell], 1, "/trials/", {})
    assert 'tabindex="0"' in html
    assert 'data-card="a &lt;note&gt;"' in html
    assert "href" not in html


def test_figure_cells_start_groups_and_name_missing_values() -> None:
    columns = [
        RowColumn("p50", "p50", "p50", "Time, s", "<none>"),
        RowColumn("retries", "retries", "retries", "Requests and cost"),
        RowColumn("cost", "cost", "cost", "Requests and cost"),
    ]
    value = MetricValue(None, Figure(1, 1, "dollars"), None)
    figures = ((columns[0], NO_VALUE), (columns[1], value), (columns[2], NO_VALUE))
    tally = Tally(answers_429=1200, answers_5xx=3, retries=4, cost=0.5)
    row = GridRow("", "a", "", "", False, RATE_CELL, (), tally, figures)
    assert figure_cells(row) == (
        '<td class="num g"><span class="muted">&lt;none&gt;</span></td>'
        '<td class="num g">1,200 + 3 · 4</td>'
        '<td class="num"><span class="muted">no success</span></td>'
    )
