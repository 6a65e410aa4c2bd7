"""Presets with their patches, and the effective policy with the origin of each key."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.endpoints.setup_pages import get_presets
from toolbench.lab.planning.policy_page import PolicyChoice, get_policy_page
from toolbench.web.rendering import page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /presets/"""
    return page(request, "presets/show.html", {"presets": get_presets()})


@require_safe
def policy(request: HttpRequest) -> HttpResponse:
    """GET /policy/?model=&profile=&strategy=&method=&scenario=, or ?config= for one frozen in a run."""
    choice = PolicyChoice.from_query(request.GET.dict())
    return page(request, "presets/policy.html", {"page": get_policy_page(choice)})
