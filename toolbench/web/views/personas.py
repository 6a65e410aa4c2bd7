"""View of the simulated models, whose true rates are known."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.endpoints.personas import get_personas
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the simulated models (GET /demo/personas/)."""
    return render_page(request, "personas/show.html", {"personas": get_personas()})
