"""Views of health: a page with problems and processes, metrics, and a check for a supervisor."""

from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.accounts.tokens import Scope, find_access
from toolbench.lab.operations import prometheus
from toolbench.lab.operations.health_page import get_health_page
from toolbench.lab.worker.health import check_database
from toolbench.web.rendering import render_page
from toolbench.web.requests import is_loopback

FORWARDING_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via")
METRICS_REFUSAL = (
    "Metrics need a token with the scope read: send `Authorization: Bearer TOKEN`. Without a token they are only for "
    "programs on this machine, if the site has no public address.\n"
)


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show problems in words, processes by their heartbeat, and the space on disk (GET /health/)."""
    page = get_health_page()
    return render_page(request, "health/show.html", {"page": page, "health": page.health}, part="processes")


@login_not_required
@require_safe
def check_live(request: HttpRequest) -> HttpResponse:
    """Return "ok" if the database answers, without a sign-in (GET /health/live).

    If the database does not answer, the response has status 503.
    """
    check_database()
    return HttpResponse("ok", content_type="text/plain")


@login_not_required
@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:
    """Return metrics for Prometheus to a token or to a program on this machine (GET /health/metrics)."""
    if _may_read_metrics(request):
        return HttpResponse(prometheus.render_metrics(), content_type=prometheus.CONTENT_TYPE)
    headers = {"WWW-Authenticate": 'Bearer realm="Toolbench"'}
    return HttpResponse(METRICS_REFUSAL, status=401, content_type="text/plain; charset=utf-8", headers=headers)


def _may_read_metrics(request: HttpRequest) -> bool:
    """Return whether a request may read metrics.

    The request needs a token with the scope read. Without a token, it must come from this machine, and the site must
    have no public address. A request with forwarding headers does not come from this machine: a proxy passed it on.
    """
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    if kind:
        access = find_access(secret.strip()) if kind.lower() == "bearer" else None
        return access is not None and Scope.READ in access.scopes
    is_forwarded = any(name in request.headers for name in FORWARDING_HEADERS)
    is_site_local = is_loopback(urlsplit(settings.BASE_URL).hostname or "")
    return is_site_local and not is_forwarded and is_loopback(request.META.get("REMOTE_ADDR", ""))
