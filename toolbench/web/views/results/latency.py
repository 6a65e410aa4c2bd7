"""View of the latency of one run, drawn by Plotly in the browser."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.run.latency import TIME_METRICS, get_latency
from toolbench.web.charts import allow_inline_styles, build_latency_chart
from toolbench.web.rendering import render_page


@require_safe
@allow_inline_styles
def show(request: HttpRequest) -> HttpResponse:
    """Show the latency of ?run=, or of the newest run."""
    choice = (request.GET.get("metric", "trial"), request.GET.get("group", ""))
    shown = get_latency(parse_whole_number(request.GET.get("run", "")), *choice)
    metrics = {name: title for name, (title, _) in TIME_METRICS.items()}
    return render_page(
        request, "latency/show.html", {"page": shown, "metrics": metrics, "chart": build_latency_chart(shown)}
    )
