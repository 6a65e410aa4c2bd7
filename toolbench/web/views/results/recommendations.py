"""View of the published and the computed recommendations, side by side."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.evals.decisions.recommendations import PROFILE_RULES
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.recommendations import (
    PUBLISHED_SCOPE,
    recommend_from_published,
    recommend_from_trials,
)
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the recommendations of ?scope= or ?run=; by default, the published ones.

    ?scope= is published, real or demo.
    """
    query = DecideQuery.from_query(request.GET)
    is_published = request.GET.get("scope", PUBLISHED_SCOPE) == PUBLISHED_SCOPE and not query.runs
    page = recommend_from_published(query) if is_published else recommend_from_trials(query)
    context = {"page": page, "query": query, "is_published": is_published, "profile_rules": PROFILE_RULES}
    return render_page(request, "recommendations/show.html", context)
