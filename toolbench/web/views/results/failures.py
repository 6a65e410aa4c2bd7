"""Views of failures across runs and of the tables of causes and failure classes."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.results.failures.page import get_causes_by_group, get_classes_by_kind, get_failures
from toolbench.lab.results.failures.published import build_published_failures
from toolbench.lab.results.failures.query import COUNTED_PROBLEMS, FailuresQuery
from toolbench.lab.results.filter_chips import get_filter_chips
from toolbench.lab.results.published import get_published_matrix
from toolbench.web.context_processors import SECTIONS
from toolbench.web.rendering import render_page
from toolbench.web.result_scope import list_page_scopes

PAGE_LABELS = {tab.url: tab.label for section in SECTIONS for tab in section.tabs} | {"/health/": "Health"}


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the failures of ?scope= or ?run= (GET /failures/)."""
    query = FailuresQuery.from_query(request.GET)
    context: dict[str, object] = {"query": query, "counted_problems": COUNTED_PROBLEMS}
    context |= {"scope_links": list_page_scopes(query, run=None)}
    if query.is_published:
        published = build_published_failures(get_published_matrix())
        return render_page(request, "failures/show.html", {**context, "published": published, "runs": ()})
    page = get_failures(query)
    chips = get_filter_chips(query.chosen, scope=query.scope, runs=query.runs)
    context |= {"page": page, "runs": page.runs, "filter_chips": chips}
    return render_page(request, "failures/show.html", context)


@require_safe
def show_codes(request: HttpRequest) -> HttpResponse:
    """Show the tables of causes and failure classes (GET /failures/codes/). Each row has an anchor."""
    context = {"groups": get_causes_by_group(), "version": read_taxonomy_version(), "page_labels": PAGE_LABELS}
    context |= {"classes": get_classes_by_kind()}
    return render_page(request, "failures/codes.html", context)
