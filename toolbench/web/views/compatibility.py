"""View of compatibility by model and check."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.endpoints.compatibility_page import get_provider_tables
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show compatibility by model and check (GET /compatibility/)."""
    return render_page(request, "compatibility/show.html", {"tables": get_provider_tables()})
