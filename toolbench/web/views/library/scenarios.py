"""Views of scenarios: their prompts, tools and rules."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.scenarios.page import get_scenario_page, get_scenarios
from toolbench.web.rendering import render_page


@require_safe
def list_scenarios(request: HttpRequest) -> HttpResponse:
    """Show the list of scenarios (GET /scenarios/)."""
    return render_page(request, "scenarios/list.html", {"groups": get_scenarios()})


@require_safe
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the instance of a scenario for ?seed= and ?version=; without a seed, the published wording."""
    try:
        page = get_scenario_page(slug, request.GET.get("seed", ""), request.GET.get("version", ""))
    except KeyError:
        raise Http404(f"There is no scenario {slug}; a later version may have renamed or removed it.") from None
    return render_page(request, "scenarios/show.html", {"page": page})
