"""What was tried elsewhere: the list, and a file to import."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.interchange.history.import_history import get_histories, get_history
from toolbench.lab.interchange.queue import get_import, open_imports
from toolbench.lab.interchange.safe_zip import ImportRefused
from toolbench.lab.models import History, Replay
from toolbench.lab.results.run.index import get_runs
from toolbench.web.forms.imports import take
from toolbench.web.rendering import page
from toolbench.web.request_user import owner_of


@require_safe
def list(request: HttpRequest) -> HttpResponse:
    found = {"jobs": open_imports(), "lines": get_runs("imported"), "histories": get_histories()}
    return page(request, "imports/list.html", found)


@require_safe
def history(request: HttpRequest, history_id: int) -> HttpResponse:
    try:
        found = get_history(history_id)
    except History.DoesNotExist:
        raise Http404(f"There is no history {history_id}.") from None
    return page(request, "imports/history.html", {"page": found})


@require_POST
def new(request: HttpRequest) -> HttpResponse:
    try:
        taken = take(request.FILES.get("file"), owner_of(request))
    except ImportRefused as refused:
        messages.error(request, str(refused))
        return redirect("imported")
    if isinstance(taken, Replay):
        return redirect("import-job", taken.pk)
    messages.success(request, f"Run {taken.pk} is imported with {taken.trial_count} trials.")
    return redirect("run", taken.pk)


@require_safe
def job(request: HttpRequest, job_id: int) -> HttpResponse:
    """GET /imported/jobs/ID/: how far an import is that a worker does."""
    try:
        found = get_import(job_id)
    except Replay.DoesNotExist:
        raise Http404(f"There is no import {job_id}.") from None
    return page(request, "imports/job.html", {"page": found}, part="found")
