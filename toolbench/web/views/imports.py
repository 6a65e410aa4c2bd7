"""Views of imports: imported runs and histories, the upload of a file, and the progress of an import."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.interchange.history.import_file import get_histories, get_history_page
from toolbench.lab.interchange.queue import get_import, get_listed_imports
from toolbench.lab.interchange.safe_zip import RunImportError
from toolbench.lab.models import History, Replay, Run
from toolbench.lab.results.run.index import get_runs
from toolbench.web.forms.imports import start_import
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_user, record


@require_safe
def list_imports(request: HttpRequest) -> HttpResponse:
    """Show open and lately refused imports, imported runs and imported histories (GET /imported/)."""
    context = {"jobs": get_listed_imports(), "lines": get_runs("imported"), "histories": get_histories()}
    return render_page(request, "imports/list.html", context)


@require_safe
def show_history(request: HttpRequest, history_id: int) -> HttpResponse:
    """Show an imported history."""
    try:
        page = get_history_page(history_id)
    except History.DoesNotExist:
        raise Http404(f"There is no history {history_id}; it may have been deleted.") from None
    return render_page(request, "imports/history.html", {"page": page})


@require_POST
def upload(request: HttpRequest) -> HttpResponse:
    """Import the uploaded file, or queue a large one for a worker."""
    file = request.FILES.get("file")
    try:
        imported = start_import(file, find_user(request))
    except RunImportError as error:
        messages.error(request, str(error))
        return redirect("imported")
    is_queued = isinstance(imported, Replay)
    url = reverse("import-job" if is_queued else "run", args=[imported.pk])
    record(request, Action.IMPORTED, f"file {getattr(file, 'name', '')}", url)
    if isinstance(imported, Replay):
        return redirect("import-job", imported.pk)
    messages.success(request, _describe_import(imported))
    return redirect("run", imported.pk)


def _describe_import(run: Run) -> str:
    return f"Run {run.pk} is imported with {run.trial_count:,} trial{pluralize(run.trial_count)}."


@require_safe
def show_job(request: HttpRequest, job_id: int) -> HttpResponse:
    """Show the progress of an import by a worker (GET /imported/jobs/ID/)."""
    try:
        page = get_import(job_id)
    except Replay.DoesNotExist:
        raise Http404(f"There is no import {job_id}; it may have been deleted.") from None
    return render_page(request, "imports/job.html", {"page": page}, part="progress")
