"""View that adds missing trials to several cells of a run."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from toolbench.lab.models import Run
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.results.run.missing_trials import MissingTrialsPage, get_missing_trials_page
from toolbench.lab.runs import control
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.runs.sentences import describe_added
from toolbench.web.context_processors import build_run_frame
from toolbench.web.forms.run_actions import MissingTrialsForm
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, record


@require_http_methods(["GET", "HEAD", "POST"])
def add_missing(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the cells with fewer trials than ?target=; on POST, add trials to the chosen cells."""
    form = MissingTrialsForm.parse(request.POST if request.method == "POST" else request.GET)
    context: dict[str, object] = {"form": form, "error": "", "needed": None}
    try:
        if request.method == "POST" and _add_trials(request, run_id, form):
            return redirect("run", run_id)
    except RunActionError as error:
        context["error"] = str(error)
    except PaidRequestsUnconfirmedError as error:
        context["needed"] = error
    page = _get_page(run_id, form)
    context |= {"page": page, "frame": build_run_frame(request, page.run)}
    return render_page(request, "runs/missing.html", context)


def _get_page(run_id: int, form: MissingTrialsForm) -> MissingTrialsPage:
    try:
        return get_missing_trials_page(run_id, target=form.target, chosen=form.cells)
    except Run.DoesNotExist:
        raise Http404(f"There is no run {run_id}; it may have been deleted.") from None


def _add_trials(request: HttpRequest, run_id: int, form: MissingTrialsForm) -> bool:
    """Add the trials that the form requests. Return False for a form without a target, else True.

    Raises:
        RunActionError: the trials cannot be added.
        PaidRequestsUnconfirmedError: paid requests must be confirmed first.
    """
    if form.target is None:
        return False
    cells = form.cells or frozenset()
    added = control.add_missing_trials(run_id, cells, form.target, shown=form.shown, confirmed_requests=form.agreed)
    sentence = describe_added(added)
    messages.success(request, sentence)
    record(request, Action.CHANGED, f"run {run_id}: {sentence}", reverse("run", args=[run_id]))
    return True
