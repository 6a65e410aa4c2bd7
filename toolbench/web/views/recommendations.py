"""Recommendations, published and ours, side by side."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.recommendations import (
    PUBLISHED,
    profile_rules,
    recommend_from_snapshot,
    recommend_from_trials,
)
from toolbench.web.rendering import page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /decide/recommendations/. ?scope= is published (also where none is named), real, runs or demo."""
    query = DecideQuery.from_query(request.GET)
    snapshot = request.GET.get("scope", PUBLISHED) == PUBLISHED and not query.runs
    found = recommend_from_snapshot(query) if snapshot else recommend_from_trials(query)
    context = {"page": found, "query": query, "snapshot": snapshot, "profile_rules": profile_rules()}
    return page(request, "recommendations/show.html", context)
