"""Views of latency: the page, and its charts as SVG files."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbench.lab.results.filter_chips import get_filter_chips
from toolbench.lab.results.latency.page import MAX_ANSWERS, get_latency
from toolbench.lab.results.latency.query import TIME_METRICS, LatencyQuery
from toolbench.lab.results.published import get_published_matrix
from toolbench.web.latency_charts import MAX_DOTS, build_latency_charts
from toolbench.web.rendering import render_page
from toolbench.web.result_scope import list_page_scopes

CHARTS = ("dots", "shares")  # names in the URL
_METRIC_LABELS = {name: label for name, (label, _) in TIME_METRICS.items()}


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the latency that the URL describes (GET /latency/)."""
    query = LatencyQuery.from_query(request.GET)
    links = list_page_scopes(query, run=None)
    context: dict[str, object] = {"query": query, "scope_links": links, "metrics": _METRIC_LABELS}
    if query.is_published:
        return render_page(
            request, "latency/published.html", {**context, "published": get_published_matrix(), "runs": ()}
        )
    page = get_latency(query)
    chips = get_filter_chips(query.chosen, scope=query.scope, runs=query.runs)
    shown = {"page": page, "runs": page.runs, "filter_chips": chips, "charts": build_latency_charts(page)}
    limits = {"max_answers": MAX_ANSWERS, "max_dots": MAX_DOTS}
    return render_page(request, "latency/show.html", {**context, **shown, **limits})


@require_safe
def export_chart(request: HttpRequest, chart: str) -> HttpResponse:
    """Return a chart of the page as a file (GET /latency/dots.svg or /latency/shares.svg).

    Raises:
        Http404: there is no such chart, or the published snapshot is shown, which has none.
    """
    query = LatencyQuery.from_query(request.GET)
    if chart not in CHARTS or query.is_published:
        raise Http404("There is no chart with this name.")
    page = get_latency(query)
    context = {"page": page, "charts": build_latency_charts(page)}
    response = render(request, f"latency/{chart}.svg", context, content_type="image/svg+xml")
    response["Content-Disposition"] = f'attachment; filename="toolbench-latency-{chart}.svg"'
    return response
