"""Views of the comparison of sides with a baseline, and of its export."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.results.compare.choices import get_compare_choices, list_side_runs
from toolbench.lab.results.compare.export import export_sides
from toolbench.lab.results.compare.page import get_sides_page
from toolbench.lab.results.compare.published_rows import compare_published
from toolbench.lab.results.compare.query import SUCCESS_METRICS, CompareQuery
from toolbench.lab.results.compare.scope_sides import get_scope_sides
from toolbench.web.downloads import build_table_response
from toolbench.web.forest import build_forest
from toolbench.web.forms.compare import build_side_fields, list_carried_fields
from toolbench.web.rendering import render_page
from toolbench.web.result_scope import get_chips_of_query, list_compare_scopes


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the comparison that the URL describes (GET /compare/)."""
    url_query = CompareQuery.from_query(request.GET)
    if url_query.is_published:
        return _show_published(request, url_query)
    sides = get_scope_sides(url_query)
    shown = get_sides_page(sides.query) if sides.query.is_complete else None
    context = {"url_query": url_query, "query": sides.query, "sides": sides, "shown": shown}
    forest = build_forest(sides.query, shown.comparison.rows) if shown else None
    context |= {"forest": forest, "carried": list_carried_fields(url_query), "runs": list_side_runs(url_query)}
    context |= {"scope_links": list_compare_scopes(url_query)}
    context |= {"filter_chips": get_chips_of_query(request.GET), "metrics": SUCCESS_METRICS, "choices": None}
    if shown is None or "choose" in request.GET:
        context |= _build_choices(sides.query)
    return render_page(request, "compare/show.html", context)


def _show_published(request: HttpRequest, query: CompareQuery) -> HttpResponse:
    """Show the comparison of rows of the published matrix."""
    shown = compare_published(query)
    forest = build_forest(shown.query, shown.rows) if shown else None
    links = list_compare_scopes(query)
    context = {"query": shown.query if shown else query, "shown": shown, "forest": forest, "scope_links": links}
    return render_page(request, "compare/published.html", context)


def _build_choices(query: CompareQuery) -> dict[str, object]:
    """Return the template context of the form that chooses the sides."""
    choices = get_compare_choices()
    return {"choices": choices, "fields": build_side_fields(query, choices), "metrics": SUCCESS_METRICS}


@require_safe
def export(request: HttpRequest, file_format: str) -> HttpResponse:
    """Return the comparison as a file (GET /compare/export.csv, .json or .md).

    Raises:
        Http404: the URL does not name two or more sides of measured trials.
    """
    query = CompareQuery.from_query(request.GET)
    if not query.is_complete or query.is_published:
        raise Http404("Choose two or more sides of measured trials before you export them.")
    return build_table_response(export_sides(query), file_format, name="toolbench-compare")
