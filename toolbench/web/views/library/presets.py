"""Views of presets and simulated models, and of the effective policy with the origin of each key."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.endpoints.setup_pages import get_presets
from toolbench.lab.endpoints.simulated import get_personas
from toolbench.lab.planning.policy_page import PolicyQuery, get_policy_page
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the presets (GET /presets/)."""
    return render_page(request, "presets/show.html", {"presets": get_presets()})


@require_safe
def show_policy(request: HttpRequest) -> HttpResponse:
    """Show the policy of ?model=, ?profile=, ?strategy=, ?method= and ?scenario=, or the frozen one of ?config=."""
    choice = PolicyQuery.from_query(request.GET.dict())
    return render_page(request, "presets/policy.html", {"page": get_policy_page(choice)})


@require_safe
def show_personas(request: HttpRequest) -> HttpResponse:
    """Show the simulated models (GET /demo/personas/)."""
    return render_page(request, "personas/show.html", {"personas": get_personas()})
