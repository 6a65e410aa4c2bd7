"""Two sides against each other, and the same as a file."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.compare import get_comparison
from toolbench.lab.compare_query import METRICS, CompareQuery
from toolbench.web.pages import page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /compare/. The address holds both sides."""
    query = CompareQuery.from_query(request.GET)
    context: dict[str, object] = {"query": query, "metrics": METRICS}
    if query.asked:
        context["page"] = get_comparison(query)
    return page(request, "compare/show.html", context)
