"""What every metric means."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.metrics import GROUPS
from toolbench.web.pages import page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /metrics/. Each metric has an anchor."""
    return page(request, "metrics/show.html", {"groups": GROUPS})
