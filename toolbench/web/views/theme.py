"""View that sets the theme. A cookie keeps it, so that the first paint is right."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_POST

from toolbench.web.context_processors import THEMES
from toolbench.web.safe_redirect import choose_local_path

YEAR_SECONDS = 60 * 60 * 24 * 365


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Set the theme and redirect to the page of the form; an unknown theme means the system's."""
    theme = request.POST.get("theme", "system")
    response = HttpResponseRedirect(choose_local_path(request.POST.get("next", "")))
    response.set_cookie("theme", theme if theme in THEMES else "system", max_age=YEAR_SECONDS, samesite="Lax")
    return response
