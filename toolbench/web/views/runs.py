"""Runs: the list, the launch form, one run, and what can be done to it."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from toolbench.lab.confirmation import ConfirmationNeeded
from toolbench.lab.interchange.bundle.selection import private_cases
from toolbench.lab.models import Run
from toolbench.lab.planning.forecast_page import forecast_plan, forecast_rest
from toolbench.lab.planning.launch_form import get_launch_choices
from toolbench.lab.planning.statistical_power import get_power_hint
from toolbench.lab.replays.rejudge import get_judging_state
from toolbench.lab.results.run.frozen_settings import get_frozen_settings
from toolbench.lab.results.run.index import Kind, get_runs
from toolbench.lab.results.run.page import get_run_page
from toolbench.lab.runs import control
from toolbench.web.forms.launch import PLANNED_BY, LaunchForm
from toolbench.web.forms.run_actions import read_action
from toolbench.web.forms.start_run import answer_to
from toolbench.web.rendering import page, redirect_to_short_address, wants_part
from toolbench.web.request_user import owner_of


@require_safe
def list(request: HttpRequest, kind: Kind = "own") -> HttpResponse:
    return page(request, "runs/list.html", {"lines": get_runs(kind), "simulated": kind == "simulated"})


@require_http_methods(["GET", "HEAD", "POST"])
@redirect_to_short_address
def new(request: HttpRequest) -> HttpResponse:
    """GET shows the form and its forecast, whole or in part; POST starts the run or says what is wrong."""
    typed = request.POST or (LaunchForm.completed(request.GET) if PLANNED_BY & request.GET.keys() else None)
    form = LaunchForm(get_launch_choices(), typed)
    wish = form.to_request()
    answer = answer_to(form, wish, start=request.method == "POST", owner=owner_of(request))
    if answer.run:
        return redirect("run", answer.run.pk)
    asked = request.method == "POST"
    context: dict[str, object] = {"form": form, "plan": answer.plan, "agreed": answer.agreed, "asked": asked}
    if wish and answer.plan:
        context["forecast"] = forecast_plan(answer.plan, wish)
        context["power"] = get_power_hint(answer.plan, form.points_wanted())
    return page(request, "runs/new.html", context, part="forecast")


@require_safe
def show(request: HttpRequest, run_id: int) -> HttpResponse:
    """GET /runs/ID/; htmx asks for the live part alone while it goes on. ?config= and ?scenario= choose the settings
    shown below it."""
    try:
        context: dict[str, object] = {"page": get_run_page(run_id), "forecast": forecast_rest(run_id)}
    except Run.DoesNotExist:
        raise Http404(f"There is no run {run_id}; it may have been deleted.") from None
    if not wants_part(request):
        context |= {"judging": get_judging_state(run_id), "private_cases": private_cases(run_id)}
        context["frozen"] = get_frozen_settings(
            run_id, config=request.GET.get("config", ""), scenario=request.GET.get("scenario", "")
        )
    return page(request, "runs/show.html", context, part="live")


@require_POST
def act(request: HttpRequest, run_id: int) -> HttpResponse:
    """One form, one button: cancel, pause, resume, retry errored, raise the caps, repeat, label or delete. What may
    have to be paid for is asked about first."""
    action = read_action(request.POST)
    try:
        done = action.carry_out(run_id, owner_of(request))
        messages.success(request, done.sentence)
    except control.Refused as refused:
        messages.error(request, str(refused))
        return redirect("run", run_id)
    except ConfirmationNeeded as needed:
        return page(request, "runs/act.html", {"run_id": run_id, "again": action.again, "needed": needed})
    return redirect("run", done.run_id) if done.run_id else redirect("runs")
