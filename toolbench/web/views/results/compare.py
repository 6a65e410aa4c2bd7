"""Views of the comparison of two sides and its export."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.results.compare.choices import get_compare_choices
from toolbench.lab.results.compare.export import export_comparison
from toolbench.lab.results.compare.page import get_compare_page
from toolbench.lab.results.compare.published_rows import compare_published
from toolbench.lab.results.compare.query import SUCCESS_METRICS, CompareQuery
from toolbench.web.downloads import build_table_response
from toolbench.web.forms.compare import build_side_fields
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the comparison that the URL describes (GET /compare/)."""
    query = CompareQuery.from_query(request.GET)
    choices = get_compare_choices()
    context: dict[str, object] = {"query": query, "metrics": SUCCESS_METRICS, "choices": choices}
    context |= {"sides": build_side_fields(query, choices), "page": None, "published": None}
    if query.is_complete and query.published:
        context["published"] = compare_published(query)
    elif query.is_complete:
        context["found"] = found = get_compare_page(query)
        context["page"] = found.page
    return render_page(request, "compare/show.html", context)


@require_safe
def export(request: HttpRequest, kind: str) -> HttpResponse:
    """Return the comparison as a file (GET /compare/export.csv, .json or .md)."""
    query = CompareQuery.from_query(request.GET)
    if not query.is_complete or query.published:
        raise Http404("Choose two sides of measured trials first; then they can be taken away as a file.")
    return build_table_response(export_comparison(query), kind, name="toolbench-compare")
