"""Views of health: a page with all processes and local servers, and a check for a supervisor."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.worker.health import check_database, get_health
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show processes by their heartbeat and local servers by their URL (GET /health/)."""
    return render_page(request, "health/show.html", {"page": get_health()}, part="processes")


@login_not_required
@require_safe
def check_live(request: HttpRequest) -> HttpResponse:
    """Return "ok" if the database answers, without a sign-in (GET /health/live)."""
    check_database()
    return HttpResponse("ok", content_type="text/plain")
