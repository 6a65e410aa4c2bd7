"""Views of failures across runs and of the table of causes."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.results.failures.page import get_causes_by_group, get_failures
from toolbench.lab.results.failures.published import build_published_failures
from toolbench.lab.results.failures.query import COUNTED_PROBLEMS, FailuresQuery
from toolbench.lab.results.published import get_published_matrix
from toolbench.lab.results.scope_chips import SCOPE_LABELS, get_scope_chips
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the failures of ?scope= or ?run= (GET /failures/)."""
    query = FailuresQuery.from_query(request.GET)
    context: dict[str, object] = {"query": query, "scopes": SCOPE_LABELS, "counted_problems": COUNTED_PROBLEMS}
    if query.is_published:
        published = build_published_failures(get_published_matrix())
        return render_page(request, "failures/show.html", {**context, "published": published, "runs": ()})
    page = get_failures(query)
    scope = get_scope_chips(query.chosen, kind=query.scope, runs=query.runs)
    return render_page(request, "failures/show.html", {**context, "page": page, "runs": page.runs, "scope": scope})


@require_safe
def show_codes(request: HttpRequest) -> HttpResponse:
    """Show the table of causes (GET /failures/codes/). Each cause has an anchor."""
    return render_page(
        request, "failures/codes.html", {"groups": get_causes_by_group(), "version": read_taxonomy_version()}
    )
