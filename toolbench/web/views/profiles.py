"""View of the sampling profiles."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.endpoints.setup_pages import get_profiles
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the sampling profiles (GET /profiles/)."""
    return render_page(request, "profiles/show.html", {"profiles": get_profiles()})
