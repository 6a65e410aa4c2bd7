"""Views of the matrix and its exports."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.filter_chips import get_filter_chips
from toolbench.lab.results.matrix.columns import ROW_COLUMNS
from toolbench.lab.results.matrix.details import get_row_details
from toolbench.lab.results.matrix.export import export_matrix
from toolbench.lab.results.matrix.grid import get_grid_with_causes
from toolbench.lab.results.matrix.published_grid import build_published_grid
from toolbench.lab.results.matrix.query import TARGET_PERCENTS, VIEWS, MatrixQuery
from toolbench.lab.results.matrix.table import choose_scope, get_matrix
from toolbench.lab.results.published import get_published_matrix
from toolbench.web.downloads import build_table_response
from toolbench.web.rendering import render_page
from toolbench.web.result_scope import ScopeLink, list_page_scopes

CHOICES: dict[str, object] = {
    "targets": TARGET_PERCENTS,
    "metrics": tuple(METRICS.values()),
    "views": VIEWS,
    "row_columns": tuple(ROW_COLUMNS.values()),
    "base": "",  # path in links to the matrix: empty on the page of the matrix itself; the run page sets it
}
PUBLISHED_VIEWS = {name: label for name, label in VIEWS.items() if name != "strategy"}  # the snapshot has one strategy


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the matrix for the scope, metric, target, filter and open row of the URL (GET /matrix/)."""
    query = choose_scope(MatrixQuery.from_query(request.GET))
    if query.scope == "published":
        return _show_published(request, query)
    matrix = get_matrix(query)
    chips = get_filter_chips(query.chosen, scope=query.scope, runs=query.runs)
    context: dict[str, object] = {**CHOICES, "query": matrix.query, "matrix": matrix, "filter_chips": chips}
    context |= {"scope_links": _list_scopes(query)}
    if query.view == "bars":
        return render_page(request, "matrix/show.html", {**context, "panel": get_row_details(matrix)})
    grid = get_grid_with_causes(matrix, parse_whole_number(request.GET.get("page", "")) or 1)
    return render_page(request, "matrix/grid.html", {**context, "grid": grid})


def _show_published(request: HttpRequest, query: MatrixQuery) -> HttpResponse:
    """Show the published snapshot as a grid or as bars; a view that the snapshot lacks becomes the default one."""
    if query.view not in PUBLISHED_VIEWS:
        query = replace(query, view="")
    published = get_published_matrix(query.target)
    rows = [row for row in published.rows if query.q.lower() in row.model.lower()] if published else []
    context: dict[str, object] = {**CHOICES, "views": PUBLISHED_VIEWS, "query": query, "published": published}
    context |= {"scope_links": _list_scopes(query)}
    if published is None or query.view == "bars":
        return render_page(request, "matrix/published.html", {**context, "rows": rows})
    matrix, grid = build_published_grid(published, query, rows)
    return render_page(request, "matrix/grid.html", {**context, "matrix": matrix, "grid": grid})


def _list_scopes(query: MatrixQuery) -> tuple[ScopeLink, ...]:
    return list_page_scopes(replace(query, cell=""), group="")


@require_safe
def export(request: HttpRequest, file_format: str) -> HttpResponse:
    """Return the matrix as a file (GET /matrix/export.csv, .json or .md), the case study's columns first."""
    query = choose_scope(MatrixQuery.from_query(request.GET))
    return build_table_response(export_matrix(query), file_format, name=f"toolbench-matrix-{query.scope}")
