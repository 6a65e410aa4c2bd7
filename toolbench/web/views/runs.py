"""Views of runs: the list, the launch form, one run, and its actions."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from toolbench.lab.interchange.bundle.selection import find_private_scenarios
from toolbench.lab.metrics.provider_budget import list_provider_budgets
from toolbench.lab.models import Run
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.forecast_page import estimate_plan, estimate_remaining
from toolbench.lab.planning.launch_form import get_launch_choices
from toolbench.lab.planning.run_request import Plan, RunRequest
from toolbench.lab.planning.statistical_power import compute_power_hint
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.replays.rejudge import get_judging_state
from toolbench.lab.results.run.frozen_settings import get_frozen_settings
from toolbench.lab.results.run.index import Kind, get_run_list
from toolbench.lab.results.run.live_grid import get_run_grid
from toolbench.lab.results.run.page import RunPage, get_run_page
from toolbench.lab.results.run.repeat import get_repeat_page
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.runs.idempotent_launch import LaunchKeyError
from toolbench.web.context_processors import build_run_frame
from toolbench.web.forms.launch import PLAN_FIELDS, LaunchForm
from toolbench.web.forms.run_actions import ActionResult, RunAction, parse_action
from toolbench.web.forms.run_list import RunListAction
from toolbench.web.forms.start_run import LaunchResult, StartMode, plan_or_launch
from toolbench.web.launch_keys import USED_KEY, launch_form_once, use_form_key
from toolbench.web.rendering import is_part_request, redirect_to_short_address, render_page
from toolbench.web.requests import Action, choose_local_path, find_user, record, redirect_refused
from toolbench.web.roles import Role, require_roles

MAX_PAGE = 1_000_000


@require_safe
def list_runs(request: HttpRequest, kind: Kind = "own") -> HttpResponse:
    """Show one page of the runs of a kind, or only of those with ?label= (GET /runs/?label=&page=)."""
    page = parse_whole_number(request.GET.get("page", ""), minimum=1, maximum=MAX_PAGE) or 1
    runs = get_run_list(kind, label=request.GET.get("label", ""), page=page)
    return render_page(request, "runs/list.html", {"runs": runs, "simulated": kind == "simulated"})


@require_POST
def act_on_several(request: HttpRequest) -> HttpResponse:
    """Label or delete the selected runs (POST /runs/act/); ask for confirmation before a deletion."""
    back = choose_local_path(request.POST.get("back", ""), reverse("runs"))
    action = RunListAction.parse(request.POST)
    try:
        if action.needs_confirmation:
            return render_page(request, "runs/delete.html", {"runs": action.list_runs(), "back": back})
        sentence = action.execute()
    except RunActionError as error:
        return redirect_refused(request, str(error), back)
    messages.success(request, sentence)
    record(request, Action.DELETED if action.name == "delete" else Action.CHANGED, action.subject)
    return redirect(back)


@require_http_methods(["GET", "HEAD", "POST"])
@redirect_to_short_address
def create(request: HttpRequest) -> HttpResponse:
    """Show the form of a new run with an estimate, for htmx only the latter; on POST, start the run.

    If the form has errors or paid requests must be confirmed, no run starts and the form is shown. A POST to ?start=one
    starts a run with one trial of each cell.
    """
    form_data = request.POST or (LaunchForm.add_defaults(request.GET) if PLAN_FIELDS & request.GET.keys() else None)
    form = LaunchForm(get_launch_choices(), form_data)
    run_request = form.to_request()
    result = _plan_or_launch(request, form, run_request)
    if result.run:
        return redirect("run", result.run.pk)
    context: dict[str, object] = {"form": form, "plan": result.plan, "is_confirmed": result.is_confirmed}
    context |= {"is_submitted": request.method == "POST", "is_part": is_part_request(request)}
    return render_page(request, "runs/new.html", context | _estimate(form, run_request, result.plan), part="summary")


def _estimate(form: LaunchForm, run_request: RunRequest | None, plan: Plan | None) -> dict[str, object]:
    """Return a plan's estimate, detectable difference and budgets as context; {} without a plan."""
    if plan is None or run_request is None:
        return {}
    budgets = list_provider_budgets(config.provider for config in plan.configs)
    power = compute_power_hint(plan, form.read_points())
    return {"forecast": estimate_plan(plan, run_request), "power": power, "budgets": budgets}


def _plan_or_launch(request: HttpRequest, form: LaunchForm, run_request: RunRequest | None) -> LaunchResult:
    if request.method != "POST":
        return plan_or_launch(form, run_request, start=StartMode.PLAN, owner=None)
    start = StartMode.ONE_OF_EACH if request.GET.get("start") == "one" else StartMode.ALL
    return launch_form_once(request, form, run_request, start=start)


@require_safe
def show(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show a run (GET /runs/ID/), or only its live part for htmx while it is running.

    ?config= and ?scenario= choose the settings that are shown, ?group= and ?sort= the rows of the grid, ?page= the
    configurations.
    """
    try:
        page = get_run_page(run_id, parse_whole_number(request.GET.get("page", ""), minimum=1, maximum=MAX_PAGE) or 1)
    except Run.DoesNotExist:
        raise Http404(f"There is no run {run_id}; it may have been deleted.") from None
    context: dict[str, object] = {"page": page, "forecast": estimate_remaining(page.run)}
    context["live_grid"] = get_run_grid(page.source, request.GET)
    if not is_part_request(request):
        context |= _get_context_outside_live_part(request, page)
    return render_page(request, "runs/show.html", context, part="live")


def _get_context_outside_live_part(request: HttpRequest, page: RunPage) -> dict[str, object]:
    """Return the context of the run page outside its live part, which htmx does not request again."""
    config, scenario = request.GET.get("config", ""), request.GET.get("scenario", "")
    return {
        "judging": get_judging_state(page.run.pk),
        "private_cases": sorted(find_private_scenarios(page.run, {cell.scenario for cell in page.source.cells})),
        "frame": build_run_frame(request, page.run),
        "frozen": get_frozen_settings(page.run.pk, config=config, scenario=scenario),
    }


@require_roles(read=Role.OPERATOR)
@require_safe
def ask_repeat(request: HttpRequest, run_id: int) -> HttpResponse:
    """Ask for confirmation before a run is repeated; ?kind=aa is an A/A repeat (GET /runs/ID/repeat/)."""
    try:
        page = get_repeat_page(run_id, for_noise=request.GET.get("kind") == "aa")
    except Run.DoesNotExist:
        raise Http404(f"There is no run {run_id}; it may have been deleted.") from None
    return render_page(request, "runs/repeat.html", {"page": page, "frame": build_run_frame(request, page.run)})


@require_POST
def act(request: HttpRequest, run_id: int) -> HttpResponse:
    """Execute an action of the run page (POST /runs/ID/act/); ask for confirmation before paid requests."""
    action = parse_action(request.POST)
    try:
        result = _execute(request, run_id, action)
    except (RunActionError, LaunchKeyError) as error:
        sentence = USED_KEY if isinstance(error, LaunchKeyError) else str(error)
        return redirect_refused(request, sentence, reverse("run", args=[run_id]))
    except PaidRequestsUnconfirmedError as needed:
        return render_page(
            request, "runs/act.html", {"run_id": run_id, "repeated_fields": action.repeated_fields, "needed": needed}
        )
    return redirect("run", result.run_id) if result.run_id else redirect("runs")


def _execute(request: HttpRequest, run_id: int, action: RunAction) -> ActionResult:
    """Execute and announce an action; a repeated request with the same idempotency key does neither."""
    with use_form_key(request) as launch_key:
        if launch_key.run is not None:
            return ActionResult("", launch_key.run.pk)
        result = action.execute(run_id, find_user(request))
        launch_key.run_id = result.run_id
        _announce(request, run_id, result)
        return result


def _announce(request: HttpRequest, run_id: int, result: ActionResult) -> None:
    """Show the result of an action and add it to the audit list."""
    messages.success(request, result.sentence)
    if result.run_id is None:
        record(request, Action.DELETED, f"run {run_id}")
    elif result.run_id == run_id:
        record(request, Action.CHANGED, f"run {run_id}: {result.sentence}", reverse("run", args=[run_id]))
    else:
        record(request, Action.LAUNCHED, f"run {result.run_id}", reverse("run", args=[result.run_id]))
