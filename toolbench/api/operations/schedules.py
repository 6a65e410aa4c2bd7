"""Operations on schedules, alert rules, alerts and deliveries. No answer contains the URL of a webhook."""

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Query, Router, Status

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.figures import SentenceDocument
from toolbench.api.documents.runs import RunDocument
from toolbench.api.documents.schedules import (
    ActiveBody,
    AlertListDocument,
    AlertQuery,
    AlertRuleBody,
    BaselineBody,
    NewScheduleBody,
    RuleDocument,
    ScheduleBody,
    ScheduleDetailDocument,
    ScheduleDocument,
    TrendLineDocument,
    TrendQuery,
)
from toolbench.api.problems import ProblemError
from toolbench.lab.accounts.audit import Action
from toolbench.lab.models import AlertDelivery, AlertRule, Run, Schedule
from toolbench.lab.query_params import clean_text
from toolbench.lab.schedules.delivery import RULE_WITHOUT_ADDRESS, list_channels, retry_delivery, send_test
from toolbench.lab.schedules.edit import ScheduleSettings, create_schedule, edit_schedule, pin_baseline, set_active
from toolbench.lab.schedules.launching import SkippedError, launch_now
from toolbench.lab.schedules.page import (
    AlertRow,
    RuleRow,
    build_rule_row,
    get_schedule_page,
    get_schedules_page,
    list_alerts_before,
)
from toolbench.lab.schedules.rules import RuleSettings, create_rule, name_rule
from toolbench.lab.schedules.trend import TrendLine, get_trend_page

router = Router()


@router.get("/schedules", response=list[ScheduleDocument], auth=READ)
def list_schedules(request: HttpRequest) -> list[Schedule]:
    """List all schedules, sorted by name."""
    return [row.schedule for row in get_schedules_page().rows]


@router.post("/schedules", response={201: ScheduleDocument}, auth=LAUNCH)
def add_schedule(request: HttpRequest, body: NewScheduleBody) -> Status[Schedule]:
    """Save the plan of a run as a schedule."""
    run = Run.objects.filter(pk=body.run, deleted_at=None).first()
    if run is None:
        raise ProblemError(422, f"Change run: there is no run {body.run}.")
    schedule = create_schedule(run, _build_settings(body), owner=get_user(request))
    _record(request, Action.ADDED, schedule)
    return Status(201, schedule)


@router.get("/schedules/{int:schedule_id}", response=ScheduleDetailDocument, auth=READ)
def get_schedule(request: HttpRequest, schedule_id: int) -> dict[str, Any]:
    """Return a schedule with its plan, newest runs, baseline, alert rules and the requests of this month."""
    schedule = _get_schedule_or_404(schedule_id)
    page = get_schedule_page(schedule)
    return {name: getattr(schedule, name) for name in ScheduleDocument.model_fields} | {
        "plan": page.plan,
        "runs": [run.pk for run in page.runs],
        "baseline": sorted(page.baseline_ids),
        "requests_of_month": page.spent,
        "rules": [_build_rule(row) for row in page.rules],
    }


@router.get("/schedules/{int:schedule_id}/trend", response=list[TrendLineDocument], auth=READ)
def get_trend(request: HttpRequest, schedule_id: int, query: Query[TrendQuery]) -> list[dict[str, Any]]:
    """Return the series of a schedule, one for each configuration, with the result of the drift test.

    The series are sorted by this result: worse, better, untested, steady.
    """
    _get_schedule_or_404(schedule_id)
    return [_build_trend_line(line) for line in get_trend_page(schedule_id, query.measure).lines]


@router.put("/schedules/{int:schedule_id}", response=ScheduleDocument, auth=LAUNCH)
def change_schedule(request: HttpRequest, schedule_id: int, body: ScheduleBody) -> Schedule:
    """Replace the settings of a schedule; they apply from the next run on."""
    schedule = edit_schedule(_get_schedule_or_404(schedule_id), _build_settings(body))
    _record(request, Action.CHANGED, schedule)
    return schedule


@router.patch("/schedules/{int:schedule_id}", response=ScheduleDocument, auth=LAUNCH)
def switch_schedule(request: HttpRequest, schedule_id: int, body: ActiveBody) -> Schedule:
    """Pause or resume a schedule."""
    schedule = _get_schedule_or_404(schedule_id)
    set_active(schedule, active=body.active)
    _record(request, Action.CHANGED, schedule)
    return _get_schedule_or_404(schedule_id)


@router.delete("/schedules/{int:schedule_id}", response={204: None}, auth=LAUNCH)
def delete_schedule(request: HttpRequest, schedule_id: int) -> Status[None]:
    """Delete a schedule with its alert rules and their alerts. Its runs are kept."""
    schedule = _get_schedule_or_404(schedule_id)
    record(request, Action.DELETED, f"schedule {schedule}", "/schedules/")
    schedule.delete()
    return Status(204, None)


@router.post("/schedules/{int:schedule_id}/runs", response={201: RunDocument}, auth=LAUNCH)
def launch_scheduled(request: HttpRequest, schedule_id: int) -> Status[Run]:
    """Launch a run of the schedule now, even if the schedule is paused.

    The answer is 409 if an earlier run has not ended, the request limit of a run or of the month is too low, or the
    plan cannot be launched.
    """
    schedule = _get_schedule_or_404(schedule_id)
    try:
        run = launch_now(schedule_id)
    except SkippedError as error:
        raise ProblemError(409, f"{error} Nothing was launched.") from error
    record(request, Action.LAUNCHED, f"run {run.pk} of schedule {schedule}", f"/runs/{run.pk}/")
    return Status(201, run)


@router.put("/schedules/{int:schedule_id}/baseline", response=SentenceDocument, auth=LAUNCH)
def pin_runs(request: HttpRequest, schedule_id: int, body: BaselineBody) -> dict[str, str]:
    """Set the baseline: the runs that later runs are compared with."""
    schedule = _get_schedule_or_404(schedule_id)
    count = pin_baseline(schedule, body.runs)
    _record(request, Action.CHANGED, schedule)
    return {"sentence": f"Baseline: {count} run{'' if count == 1 else 's'}. Later runs are compared with it."}


@router.get("/alert-rules", response=list[RuleDocument], auth=READ)
def list_rules(request: HttpRequest) -> list[dict[str, Any]]:
    """List the alert rules for all runs. GET /schedules/{schedule_id} lists the rules of a schedule."""
    return [_build_rule(row) for row in get_schedules_page().rules]


@router.post("/alert-rules", response={201: RuleDocument}, auth=LAUNCH)
def add_rule(request: HttpRequest, body: AlertRuleBody) -> Status[dict[str, Any]]:
    """Add an alert rule, which applies to runs that end from now on."""
    schedule = _get_schedule_or_404(body.schedule) if body.schedule is not None else None
    rule = create_rule(schedule, RuleSettings(body.kind, body.threshold, body.webhook, body.email))
    _record_rule(request, Action.ADDED, schedule)
    return Status(201, _build_rule(build_rule_row(rule)))


@router.patch("/alert-rules/{int:rule_id}", response=SentenceDocument, auth=LAUNCH)
def switch_rule(request: HttpRequest, rule_id: int, body: ActiveBody) -> dict[str, str]:
    """Turn an alert rule on or off."""
    rule = _get_rule_or_404(rule_id)
    AlertRule.objects.filter(pk=rule_id).update(active=body.active)
    _record_rule(request, Action.CHANGED, rule.schedule)
    return {"sentence": f"The rule is {'on' if body.active else 'off'}."}


@router.delete("/alert-rules/{int:rule_id}", response={204: None}, auth=LAUNCH)
def delete_rule(request: HttpRequest, rule_id: int) -> Status[None]:
    """Delete an alert rule and its alerts."""
    rule = _get_rule_or_404(rule_id)
    rule.delete()
    _record_rule(request, Action.DELETED, rule.schedule)
    return Status(204, None)


@router.post("/alert-rules/{int:rule_id}/test", response=SentenceDocument, auth=LAUNCH)
def send_test_message(request: HttpRequest, rule_id: int) -> dict[str, str]:
    """Send a test message to the addresses of a rule."""
    rule = _get_rule_or_404(rule_id)
    if not list_channels(rule):
        raise ProblemError(409, RULE_WITHOUT_ADDRESS)
    return {"sentence": " ".join(send_test(rule))}


@router.get("/alerts", response=AlertListDocument, auth=READ)
def list_alerts(request: HttpRequest, query: Query[AlertQuery]) -> dict[str, Any]:
    """List the alerts with their messages, newest first. Alerts of deleted runs are left out."""
    is_open = None if query.state == "all" else query.state == "open"
    rows = list_alerts_before(schedule_id=query.schedule, is_open=is_open, before=query.cursor, limit=query.limit + 1)
    page_rows = rows[: query.limit]
    next_cursor = page_rows[-1].alert.pk if len(rows) > query.limit else None
    return {"items": [_build_alert(row) for row in page_rows], "next": next_cursor}


@router.post("/alert-messages/{int:delivery_id}/retry", response=SentenceDocument, auth=LAUNCH)
def retry_message(request: HttpRequest, delivery_id: int) -> dict[str, str]:
    """Queue an alert message again if all its attempts failed or it is unclear whether it was sent; else 409.

    GET /alerts lists the ids of the messages. A webhook gets the id as the last number of the field `id`: message 12 of
    alert 7 has `alert-7-12`.
    """
    if not AlertDelivery.objects.filter(pk=delivery_id).exists():
        raise Http404(f"There is no message {delivery_id}; its rule may have been deleted.")
    if not retry_delivery(delivery_id):
        raise ProblemError(409, "The message was sent or is on its way; nothing was changed.")
    return {"sentence": "The message is queued again."}


def _build_settings(body: ScheduleBody) -> ScheduleSettings:
    values = body.model_dump(exclude={"run"}) | {"name": clean_text(body.name, 120)}
    return ScheduleSettings(**values)


def _get_schedule_or_404(schedule_id: int) -> Schedule:
    schedule = Schedule.objects.filter(pk=schedule_id).first()
    if schedule is None:
        raise Http404(f"There is no schedule {schedule_id}; it may have been deleted.")
    return schedule


def _get_rule_or_404(rule_id: int) -> AlertRule:
    rule = AlertRule.objects.select_related("schedule").filter(pk=rule_id).first()
    if rule is None:
        raise Http404(f"There is no alert rule {rule_id}; it may have been deleted.")
    return rule


def _record(request: HttpRequest, action: Action, schedule: Schedule) -> None:
    """Add an action on a schedule to the audit list."""
    record(request, action, f"schedule {schedule}", f"/schedules/{schedule.pk}/")


def _record_rule(request: HttpRequest, action: Action, schedule: Schedule | None) -> None:
    """Add an action on an alert rule to the audit list; `schedule` is None if the rule is for all runs."""
    record(request, action, name_rule(schedule), f"/schedules/{schedule.pk}/" if schedule else "/schedules/")


def _build_rule(row: RuleRow) -> dict[str, Any]:
    """Return the values of a RuleDocument."""
    names = ("id", "kind", "threshold", "webhook_host", "email", "active")
    return {name: getattr(row.rule, name) for name in names} | {
        "schedule": row.rule.schedule_id,
        "fires_when": row.fires_when,
        "open_alerts": row.open_alerts,
    }


def _build_alert(row: AlertRow) -> dict[str, Any]:
    """Return the values of an AlertDocument."""
    names = ("id", "sentence", "created_at", "resolved_at")
    return {name: getattr(row.alert, name) for name in names} | {
        "rule": row.alert.rule_id,
        "kind": row.alert.rule.kind,
        "schedule": row.alert.rule.schedule_id,
        "run": row.alert.run_id,
        "path": row.path,
        "messages": row.deliveries,
    }


def _build_trend_line(line: TrendLine) -> dict[str, Any]:
    """Return the values of a TrendLineDocument."""
    points = [
        {
            "run": point.point.run.pk,
            "value": point.measured.value if point.measured else None,
            "low": point.measured.low if point.measured else None,
            "high": point.measured.high if point.measured else None,
            "notes": point.notes,
            "in_baseline": point.is_baseline,
            "drifted": point.has_drifted,
        }
        for point in line.points
    ]
    state = {"state": line.state, "state_text": line.state_text}
    return state | {"config": str(line.series.config), "points": points}
