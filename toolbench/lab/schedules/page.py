"""Data of the list of schedules, of the page of a schedule and of the form for a new one."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, OuterRef, QuerySet, Subquery

from toolbench.lab.models import Alert, AlertDelivery, AlertRule, Run, Schedule
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import MAX_RUN_LIMIT, LaunchError, Plan, RunRequest
from toolbench.lab.schedules.conditions import CONDITIONS, ConditionKind, Kind, describe_rule
from toolbench.lab.schedules.delivery import build_alert_path
from toolbench.lab.schedules.edit import ScheduleError, build_schedule_plan
from toolbench.lab.schedules.launching import count_requests_by_schedule

MAX_RUNS_LISTED = 30
MAX_ALERTS_LISTED = 20


@dataclass(frozen=True, slots=True)
class AlertRow:
    """Alert with its deliveries.

    Attributes:
        path: path of the page about the alert.
    """

    alert: Alert
    path: str
    deliveries: tuple[AlertDelivery, ...]

    @property
    def is_open(self) -> bool:
        """Whether the alert is not resolved."""
        return self.alert.resolved_at is None


@dataclass(frozen=True, slots=True)
class RuleRow:
    """Alert rule with its state.

    Attributes:
        fires_when: description of the condition.
        open_alerts: number of open alerts.
        last: the newest alert; None if the rule has never fired.
    """

    rule: AlertRule
    fires_when: str
    open_alerts: int
    last: Alert | None

    @property
    def has_address(self) -> bool:
        """Whether the rule has an address to which it sends messages."""
        return bool(self.rule.webhook_encrypted is not None or self.rule.email)


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """Kind of rule that the form offers.

    Attributes:
        name: value of AlertRule.Kind.
        label: name of the kind for users.
    """

    name: str
    label: str
    kind: ConditionKind


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """Schedule in the list.

    Attributes:
        last_run: the newest run; None if there is none.
        spent: number of requests that the schedule's runs have reserved in this calendar month (UTC).
        open_alerts: number of open alerts.
    """

    schedule: Schedule
    last_run: Run | None
    spent: int
    open_alerts: int


@dataclass(frozen=True, slots=True)
class SchedulesPage:
    """List of schedules, with the rules and alerts for all runs.

    Attributes:
        kinds: kinds of rules that need no schedule.
    """

    rows: tuple[ScheduleRow, ...]
    rules: tuple[RuleRow, ...]
    alerts: tuple[AlertRow, ...]
    kinds: tuple[RuleChoice, ...]


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Page of one schedule.

    Attributes:
        runs: the newest MAX_RUNS_LISTED runs and those of the baseline, newest first.
        baseline_ids: ids of the runs of the baseline.
        spent: number of requests that the schedule's runs have reserved in this calendar month (UTC).
        plan: size of the next run in words, or why it cannot be launched.
        kinds: all kinds of rules.
    """

    schedule: Schedule
    runs: tuple[Run, ...]
    baseline_ids: frozenset[int]
    spent: int
    plan: str
    rules: tuple[RuleRow, ...]
    alerts: tuple[AlertRow, ...]
    kinds: tuple[RuleChoice, ...]


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """Data of the form for a new schedule.

    Attributes:
        run: the run whose plan is used; None for a plan that was not launched.
        plan: size of a run in words; "" if the plan cannot be scheduled.
        obstacle: why the plan cannot be scheduled; "" if it can.
        defaults: initial values of the form, by field name.
    """

    run: Run | None
    plan: str
    obstacle: str
    defaults: dict[str, object]


def get_new_schedule(source: Run | RunRequest) -> NewSchedule:
    """Return the data of the form for a new schedule from a plan, or from the plan of a run.

    The proposed request limit of a run is the maximum number of requests of the plan, or of paid requests, which
    include probes, if that is larger. The proposed limit of a month is 31 times as large. Both are at most
    MAX_RUN_LIMIT.
    """
    run = source if isinstance(source, Run) else None
    name = str(source) if isinstance(source, Run) else source.title
    defaults: dict[str, object] = {"name": name, "rhythm": "nightly", "hour_utc": 2}
    try:
        _, plan = build_schedule_plan(source)
    except ScheduleError as error:
        return NewSchedule(run, "", str(error), defaults)
    max_requests = min(MAX_RUN_LIMIT, max(plan.most_requests, plan.max_paid_requests))
    budget = {"requests_per_run": max_requests, "requests_per_month": min(MAX_RUN_LIMIT, 31 * max_requests)}
    return NewSchedule(run, _describe_plan(plan), "", defaults | budget)


def get_schedules_page() -> SchedulesPage:
    """Return the page with all schedules, sorted by name, with up to nine queries."""
    rows = _list_rows()
    rules = list_rules(None)
    kinds = tuple(choice for choice in _list_choices() if not choice.kind.needs_schedule)
    return SchedulesPage(rows, rules, list_alerts(Alert.objects.filter(rule__schedule=None)), kinds)


def get_schedule_page(schedule: Schedule) -> SchedulePage:
    """Return the page of a schedule."""
    baseline_ids = frozenset(schedule.baseline_runs.filter(deleted_at=None).values_list("pk", flat=True))
    newest_runs = schedule.runs.filter(deleted_at=None).order_by("-pk")[:MAX_RUNS_LISTED]
    runs = {run.pk: run for run in (*newest_runs, *Run.objects.filter(pk__in=baseline_ids))}
    return SchedulePage(
        schedule,
        tuple(runs[pk] for pk in sorted(runs, reverse=True)),
        baseline_ids,
        count_requests_by_schedule([schedule]).get(schedule.pk, 0),
        _describe_request(schedule.request),
        list_rules(schedule),
        list_alerts(Alert.objects.filter(rule__schedule=schedule)),
        _list_choices(),
    )


def list_open_alerts() -> tuple[AlertRow, ...]:
    """Return the newest open alerts of all rules, up to MAX_ALERTS_LISTED."""
    return list_alerts(Alert.objects.filter(resolved_at=None))


def list_alerts(alerts: QuerySet[Alert]) -> tuple[AlertRow, ...]:
    """Return up to MAX_ALERTS_LISTED of these alerts, without those of deleted runs.

    Open alerts come first, the newest first; then the others, the last resolved first.
    """
    newest = alerts.filter(run__deleted_at=None).order_by(F("resolved_at").desc(nulls_first=True), "-pk")
    return _read_alert_rows(newest[:MAX_ALERTS_LISTED])


def list_alerts_before(
    *, schedule_id: int | None, is_open: bool | None, before: int | None, limit: int
) -> tuple[AlertRow, ...]:
    """Return alerts, the newest first, without those of deleted runs.

    Args:
        schedule_id: the schedule of their rules; None for alerts of all rules.
        is_open: whether they are open; None for open and resolved alerts.
        before: the id of an alert, for older ones only; None for the newest.
        limit: maximum number of alerts.
    """
    alerts = Alert.objects.filter(run__deleted_at=None)
    if schedule_id is not None:
        alerts = alerts.filter(rule__schedule=schedule_id)
    if is_open is not None:
        alerts = alerts.filter(resolved_at__isnull=is_open)
    if before is not None:
        alerts = alerts.filter(pk__lt=before)
    return _read_alert_rows(alerts.order_by("-pk")[:limit])


def _read_alert_rows(alerts: QuerySet[Alert]) -> tuple[AlertRow, ...]:
    alerts = alerts.select_related("rule__schedule", "run").prefetch_related("deliveries")
    return tuple(AlertRow(alert, build_alert_path(alert), tuple(alert.deliveries.all())) for alert in alerts)


def list_rules(schedule: Schedule | None) -> tuple[RuleRow, ...]:
    """Return the rules of a schedule, or the rules for all runs if `schedule` is None, with up to three queries."""
    return _build_rule_rows(AlertRule.objects.filter(schedule=schedule))


def build_rule_row(rule: AlertRule) -> RuleRow:
    """Return a rule with its state, with up to three queries."""
    return _build_rule_rows(AlertRule.objects.filter(pk=rule.pk))[0]


def _build_rule_rows(rules: QuerySet[AlertRule]) -> tuple[RuleRow, ...]:
    newest = Alert.objects.filter(rule=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    rows = list(rules.annotate(last_alert=Subquery(newest)))
    open_alerts = _count_open_alerts("rule", rule__in=rows)
    alerts = Alert.objects.in_bulk([row.last_alert for row in rows if row.last_alert is not None])
    return tuple(
        RuleRow(row, describe_rule(row), open_alerts.get(row.pk, 0), alerts.get(row.last_alert)) for row in rows
    )


def _list_rows() -> tuple[ScheduleRow, ...]:
    newest = Run.objects.filter(schedule=OuterRef("pk"), deleted_at=None).order_by("-pk").values("pk")[:1]
    rows = list(Schedule.objects.annotate(last_run=Subquery(newest)))
    runs = Run.objects.in_bulk([row.last_run for row in rows if row.last_run is not None])
    open_alerts = _count_open_alerts("rule__schedule", rule__schedule__isnull=False)
    spent = count_requests_by_schedule(rows)
    return tuple(
        ScheduleRow(row, runs.get(row.last_run), spent.get(row.pk, 0), open_alerts.get(row.pk, 0)) for row in rows
    )


def _count_open_alerts(key: str, **conditions: Any) -> dict[int, int]:
    """Return the number of open alerts that satisfy `conditions`, by the column `key`.

    Alerts of deleted runs do not count.
    """
    alerts = Alert.objects.filter(resolved_at=None, run__deleted_at=None, **conditions).order_by()
    return dict(alerts.values_list(key).annotate(alerts=Count("pk")))


def _describe_request(request: dict[str, object]) -> str:
    """Describe the size of a run of this request, or why it cannot be launched now."""
    try:
        return _describe_plan(build_plan(RunRequest.from_json(request)))
    except LaunchError as error:
        return f"The plan cannot be launched now: {error}"


def _describe_plan(plan: Plan) -> str:
    config_count, cell_count = len(plan.configs), len(plan.cells)
    return (
        f"{config_count} configuration{'' if config_count == 1 else 's'}, "
        f"{cell_count} cell{'' if cell_count == 1 else 's'}, "
        f"{plan.trials:,} trials, {plan.least_requests:,} to {plan.most_requests:,} requests"
    )


def _list_choices() -> tuple[RuleChoice, ...]:
    return tuple(RuleChoice(kind.value, kind.label, CONDITIONS[kind]) for kind in Kind)
