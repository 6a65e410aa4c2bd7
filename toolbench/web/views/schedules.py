"""Views of schedules, of alert rules and of the messages that alert rules send."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import MAX_URL_REDIRECT_LENGTH
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from toolbench.lab.models import AlertDelivery, AlertRule, Run, Schedule
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.schedules.delivery import retry_delivery
from toolbench.lab.schedules.edit import ScheduleError, create_schedule, edit_schedule
from toolbench.lab.schedules.page import get_new_schedule, get_schedule_page, get_schedules_page
from toolbench.lab.schedules.rules import RuleError, create_rule, name_rule
from toolbench.web.forms.errors import add_form_errors
from toolbench.web.forms.schedule_actions import ScheduleActionError, act_on_rule, act_on_schedule
from toolbench.web.forms.schedules import PlanIncompleteError, RuleForm, ScheduleForm, read_plan_source
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_user, record, redirect_refused


@require_safe
def list_schedules(request: HttpRequest) -> HttpResponse:
    """Show the schedules and the alert rules for all runs."""
    return _render_list(request, RuleForm())


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Show the form for the plan of ?run= or of the other URL parameters; on POST, save the schedule."""
    if (source := _find_source(request)) is None:
        return _redirect_to_plan(request)
    new = get_new_schedule(source)
    form = ScheduleForm(request.POST) if request.method == "POST" else ScheduleForm(initial=new.defaults)
    if request.method == "POST" and form.is_valid():
        try:
            schedule = create_schedule(source, form.build_settings(), owner=find_user(request))
            record(request, Action.ADDED, f"schedule {schedule}", reverse("schedule", args=[schedule.pk]))
            return redirect("schedule", schedule.pk)
        except ScheduleError as error:
            add_form_errors(form, error)
    context = {"form": form, "new": new}
    return render_page(request, "schedules/new.html", context, status=422 if form.errors else 200)


def _find_source(request: HttpRequest) -> Run | RunRequest | None:
    """Return the run or the plan that the schedule would repeat.

    Returns:
        None for a plan with errors, which the page for a new run shows.

    Raises:
        Http404: the run does not exist.
    """
    try:
        return read_plan_source(request.GET)
    except PlanIncompleteError:
        return None
    except Run.DoesNotExist:
        raise Http404("There is no such run; it may have been deleted.") from None


def _redirect_to_plan(request: HttpRequest) -> HttpResponse:
    """Redirect to the page for a new run, with the same parameters unless the URL would be too long."""
    url = f"{reverse('run-new')}?{request.GET.urlencode()}"
    return redirect(url if len(url) <= MAX_URL_REDIRECT_LENGTH else "run-new")


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Show a schedule with its form; on POST, save it."""
    schedule = get_object_or_404(Schedule, pk=schedule_id)
    form = ScheduleForm(request.POST) if request.method == "POST" else ScheduleForm.from_schedule(schedule)
    if request.method == "POST" and form.is_valid():
        try:
            schedule = edit_schedule(schedule, form.build_settings())
            _announce(request, Action.CHANGED, schedule, "Saved. The change applies from the next run on.")
            return redirect("schedule", schedule_id)
        except ScheduleError as error:
            add_form_errors(form, error)
    return _render_schedule(request, schedule, form, RuleForm())


@require_POST
def act(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Launch a run of a schedule, pause, resume or delete it, or pin its baseline."""
    schedule = get_object_or_404(Schedule, pk=schedule_id)
    try:
        sentence = act_on_schedule(schedule, request.POST)
    except ScheduleActionError as error:
        return redirect_refused(request, str(error), reverse("schedule", args=[schedule_id]))
    is_deleted = request.POST.get("action") == "delete"
    _announce(request, Action.DELETED if is_deleted else Action.CHANGED, schedule, sentence)
    return redirect("schedules") if is_deleted else redirect("schedule", schedule_id)


@require_POST
def add_rule(request: HttpRequest) -> HttpResponse:
    """Add an alert rule for a schedule or for all runs; on errors, show the form again with its values."""
    form = RuleForm(request.POST)
    is_valid, schedule_id = form.is_valid(), form.cleaned_data.get("schedule")
    schedule = get_object_or_404(Schedule, pk=schedule_id) if schedule_id else None
    if is_valid and _save_rule(form, schedule):
        sentence = "The rule is saved. It applies to runs that end from now on."
        _announce_rule(request, Action.ADDED, schedule, sentence)
        return _redirect_to_rules(schedule)
    messages.error(request, f"The rule was not saved. {form.error_line}")
    if schedule is None:
        return _render_list(request, form)
    return _render_schedule(request, schedule, ScheduleForm.from_schedule(schedule), form)


def _save_rule(form: RuleForm, schedule: Schedule | None) -> bool:
    """Save the rule of a valid form; return False, with errors in the form, if it is refused."""
    try:
        create_rule(schedule, form.build_settings())
    except RuleError as error:
        add_form_errors(form, error)
        return False
    return True


@require_POST
def act_rule(request: HttpRequest, rule_id: int) -> HttpResponse:
    """Test an alert rule, turn it on or off, or delete it."""
    rule = get_object_or_404(AlertRule.objects.select_related("schedule"), pk=rule_id)
    schedule = rule.schedule
    name = request.POST.get("action", "")
    try:
        sentence = act_on_rule(rule, name)
    except ScheduleActionError as error:
        messages.error(request, str(error))
        return _redirect_to_rules(schedule)
    if name == "test":
        messages.success(request, sentence)
    else:
        _announce_rule(request, Action.DELETED if name == "delete" else Action.CHANGED, schedule, sentence)
    return _redirect_to_rules(schedule)


@require_POST
def retry(request: HttpRequest, delivery_id: int) -> HttpResponse:
    """Queue a delivery again that has failed or may not have arrived; show an error for any other."""
    delivery = get_object_or_404(AlertDelivery.objects.select_related("alert__rule__schedule"), pk=delivery_id)
    if retry_delivery(delivery_id):
        messages.success(request, "The message is queued again.")
    else:
        messages.error(request, "The message was sent or is on its way; nothing was changed.")
    return _redirect_to_rules(delivery.alert.rule.schedule)


def _announce(
    request: HttpRequest, action: Action, schedule: Schedule | None, sentence: str, *, name: str = ""
) -> None:
    """Show the result of an action and add it to the audit list.

    `name` is the name of what was changed; "" stands for the schedule. The entry in the list links to the page of the
    schedule or, if there is no schedule, to the list of schedules.
    """
    messages.success(request, sentence)
    has_page = schedule is not None and schedule.pk is not None  # a deleted schedule has no primary key
    url = reverse("schedule", args=[schedule.pk]) if schedule and has_page else reverse("schedules")
    record(request, action, name or f"schedule {schedule}", url)


def _announce_rule(request: HttpRequest, action: Action, schedule: Schedule | None, sentence: str) -> None:
    _announce(request, action, schedule, sentence, name=name_rule(schedule))


def _render_list(request: HttpRequest, rule_form: RuleForm) -> HttpResponse:
    context = {"page": get_schedules_page(), "rule_form": rule_form}
    return render_page(request, "schedules/list.html", context, status=422 if rule_form.errors else 200)


def _render_schedule(request: HttpRequest, schedule: Schedule, form: ScheduleForm, rule_form: RuleForm) -> HttpResponse:
    context = {"form": form, "page": get_schedule_page(schedule), "rule_form": rule_form}
    has_errors = bool(form.errors or rule_form.errors)
    return render_page(request, "schedules/show.html", context, status=422 if has_errors else 200)


def _redirect_to_rules(schedule: Schedule | None) -> HttpResponse:
    path = reverse("schedule", args=[schedule.pk]) if schedule else reverse("schedules")
    return redirect(f"{path}#rules")
