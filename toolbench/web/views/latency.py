"""The latency page: raw times of one run, drawn by Plotly in the browser."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.results.run.latency import METRICS, get_latency
from toolbench.lab.whole_numbers import whole_number
from toolbench.web.charts import latency_chart, with_inline_styles
from toolbench.web.rendering import page


@require_safe
@with_inline_styles
def show(request: HttpRequest) -> HttpResponse:
    asked = (request.GET.get("metric", "trial"), request.GET.get("group", ""))
    shown = get_latency(whole_number(request.GET.get("run", "")), *asked)
    metrics = {name: title for name, (title, _) in METRICS.items()}
    return page(request, "latency/show.html", {"page": shown, "metrics": metrics, "chart": latency_chart(shown)})
