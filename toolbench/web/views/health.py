"""Whether everything runs: a page for people, one word for a supervisor."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.worker.health import check_database, get_health
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /health/: processes by their heartbeat, local servers by their address."""
    return render_page(request, "health/show.html", {"page": get_health()}, part="processes")


@login_not_required
@require_safe
def check_live(request: HttpRequest) -> HttpResponse:
    """GET /health/live: "ok" when web server and database answer. For a supervisor; says nothing else."""
    check_database()
    return HttpResponse("ok", content_type="text/plain")
