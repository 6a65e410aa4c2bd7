"""Views of the metrics: their explanations, and their values for one run."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.metrics.definitions import GROUPS
from toolbench.lab.models import Run
from toolbench.lab.results.run.metrics import get_run_metrics
from toolbench.web.context_processors import build_run_frame
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the metrics, each with an anchor (GET /metrics/)."""
    return render_page(request, "metrics/show.html", {"groups": GROUPS})


@require_safe
def show_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the metrics of a run (GET /runs/ID/metrics/)."""
    try:
        page = get_run_metrics(run_id)
    except Run.DoesNotExist:
        raise Http404(f"There is no run {run_id}; it may have been deleted.") from None
    return render_page(request, "runs/metrics.html", {"page": page, "frame": build_run_frame(request, page.run)})
