"""Views of the matrix and its exports."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.results.matrix.details import get_row_details
from toolbench.lab.results.matrix.export import export_matrix
from toolbench.lab.results.matrix.grid import build_grid
from toolbench.lab.results.matrix.query import SCOPES, TARGET_PERCENTS, VIEWS, MatrixQuery
from toolbench.lab.results.matrix.table import choose_scope, get_matrix
from toolbench.lab.results.published import get_published_matrix
from toolbench.web.downloads import build_table_response
from toolbench.web.rendering import render_page

CHOICES = {"targets": TARGET_PERCENTS, "metrics": tuple(METRICS.values()), "scopes": SCOPES, "views": VIEWS}


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the matrix for scope, metric, target, filter and open row of the URL (GET /matrix/)."""
    query = choose_scope(MatrixQuery.from_query(request.GET))
    if query.scope == "published":
        published = get_published_matrix(query.target)
        rows = [row for row in published.rows if query.q.lower() in row.model.lower()] if published else []
        context = {**CHOICES, "query": query, "published": published, "rows": rows}
        return render_page(request, "matrix/published.html", context)
    matrix = get_matrix(query)
    shown: dict[str, object] = {**CHOICES, "query": matrix.query, "matrix": matrix}
    if query.view == "bars":
        return render_page(request, "matrix/show.html", {**shown, "panel": get_row_details(matrix)})
    return render_page(request, "matrix/grid.html", {**shown, "base": "", "grid": build_grid(matrix)})


@require_safe
def export(request: HttpRequest, kind: str) -> HttpResponse:
    """Return the matrix as a file (GET /matrix/export.csv, .json or .md), the case study's columns first."""
    query = choose_scope(MatrixQuery.from_query(request.GET))
    return build_table_response(export_matrix(query), kind, name=f"toolbench-matrix-{query.scope}")
