"""Views that re-judge the trials of a run and show the changed outcomes."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.models import Run
from toolbench.lab.replays.queue import find_rejudging, request_rejudging
from toolbench.lab.replays.rejudge import MAX_CHANGES_LISTED, get_changes
from toolbench.web.context_processors import build_run_frame
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, record

REJUDGING_QUEUED = "A worker re-judges this run. Reload this page to see its progress."


@require_POST
def rejudge(request: HttpRequest, run_id: int) -> HttpResponse:
    """Re-judge a run's trials by the current scenarios and rules; a worker does it for a large run."""
    result = request_rejudging(get_object_or_404(Run, pk=run_id, deleted_at=None))
    record(request, Action.CHANGED, f"run {run_id}: re-judged", reverse("judgements", args=[run_id]))
    messages.success(request, result.sentence if result else REJUDGING_QUEUED)
    return redirect("judgements", run_id)


@require_safe
def list_judgements(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show trials whose current outcome differs from the first one (GET /runs/ID/judgements/)."""
    run = get_object_or_404(Run, pk=run_id, deleted_at=None)
    context = {
        "run": run,
        "changes": get_changes(run),
        "max_changes": MAX_CHANGES_LISTED,
        "rejudging": find_rejudging(run),
        "frame": build_run_frame(request, run),
    }
    return render_page(request, "judgements/list.html", context)
