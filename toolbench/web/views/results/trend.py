"""View of the trend of one schedule."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.schedules.trend import MEASURES, get_trend_page
from toolbench.web.multiples import build_multiples
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the trend of ?schedule=, or of the newest schedule, with charts of ?measure= (GET /trend/)."""
    page = get_trend_page(parse_whole_number(request.GET.get("schedule", "")), request.GET.get("measure", ""))
    context = {"page": page, "multiples": build_multiples(page), "measures": MEASURES}
    return render_page(request, "trend/show.html", context)
