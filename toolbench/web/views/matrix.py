"""The matrix and its exports."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.results.matrix.details import get_panel
from toolbench.lab.results.matrix.export import export_matrix
from toolbench.lab.results.matrix.query import SCOPES, TARGETS, MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix, settled
from toolbench.lab.results.published import get_published
from toolbench.web.downloads import table_file
from toolbench.web.rendering import page

CHOICES = {"targets": TARGETS, "metrics": tuple(METRICS.values()), "scopes": SCOPES}


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /matrix/. The address holds scope, metric, target, filter and the open row."""
    query = settled(MatrixQuery.from_query(request.GET))
    if query.scope == "published":
        published = get_published(query.target)
        rows = [row for row in published.rows if query.q.lower() in row.model.lower()] if published else []
        context = {**CHOICES, "query": query, "published": published, "rows": rows}
        return page(request, "matrix/published.html", context)
    matrix = get_matrix(query)
    shown: dict[str, object] = {**CHOICES, "query": matrix.query, "matrix": matrix, "panel": get_panel(matrix)}
    return page(request, "matrix/show.html", shown)


@require_safe
def export(request: HttpRequest, kind: str) -> HttpResponse:
    """GET /matrix/export.csv, .json, .md: what the page shows, the case study's seven columns first."""
    query = settled(MatrixQuery.from_query(request.GET))
    return table_file(export_matrix(query), kind, name=f"toolbench-matrix-{query.scope}")
