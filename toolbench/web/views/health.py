"""Views of health: a page with problems and processes, and a check for a supervisor."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.operations.health_page import get_health_page
from toolbench.lab.worker.health import check_database
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show problems in words, processes by their heartbeat, and the space on disk (GET /health/)."""
    page = get_health_page()
    return render_page(request, "health/show.html", {"page": page.health, "whole": page}, part="processes")


@login_not_required
@require_safe
def check_live(request: HttpRequest) -> HttpResponse:
    """Return "ok" if the database answers, without a sign-in (GET /health/live)."""
    check_database()
    return HttpResponse("ok", content_type="text/plain")
