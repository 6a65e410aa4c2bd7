"""Check ended runs against the alert rules: each run once, and one alert per rule and series while it lasts."""

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from toolbench.lab.models import Alert, AlertDelivery, AlertRule, Run
from toolbench.lab.runs.local_demo import INTENT_PURPOSE, WEATHER_PURPOSE
from toolbench.lab.schedules.conditions import ConditionFinding, EndedRun, find_conditions
from toolbench.lab.schedules.series import load_series

MAX_RUNS_PER_CHECK = 20
MAX_SENTENCE_CHARACTERS = 500
_UNCHECKED = Q(state__in=Run.ENDED, alerts_checked_at=None)


def check_ended_runs() -> int:
    """Check the runs that ended since the last time, oldest first; return the number of new alerts.

    Any number of processes may call it: a run that another one checks is left to it.
    """
    unchecked = Run.objects.filter(_UNCHECKED).order_by("pk").values_list("pk", flat=True)
    return sum(_check_run(run_id) for run_id in list(unchecked[:MAX_RUNS_PER_CHECK]))


def _check_run(run_id: int) -> int:
    with transaction.atomic():
        runs = Run.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        run = runs.filter(_UNCHECKED, pk=run_id).first()
        if run is None:
            return 0
        count = sum(_check_rule(rule, ended) for ended, rule in _iter_rules(run))
        Run.objects.filter(pk=run_id).update(alerts_checked_at=timezone.now())
    return count


def _iter_rules(run: Run) -> list[tuple[EndedRun, AlertRule]]:
    """Return the rules for the run, locked, so that an alert is opened once; later ones do not apply to it."""
    if run.imported or run.deleted_at or run.purpose in (WEATHER_PURPOSE, INTENT_PURPOSE):
        return []
    ended_at = run.finished_at or timezone.now()
    rules = AlertRule.objects.filter(active=True, created_at__lte=ended_at)
    rules = (
        rules.filter(Q(schedule=None) | Q(schedule=run.schedule_id)) if run.schedule_id else rules.filter(schedule=None)
    )
    found = list(rules.select_for_update(of=("self",), no_key=True).order_by("pk"))
    if not found:
        return []
    ended = EndedRun(run, load_series(run.schedule) if run.schedule else ())
    return [(ended, rule) for rule in found]


def _check_rule(rule: AlertRule, ended: EndedRun) -> int:
    """Open alerts for what holds now, resolve those for what does not; return the number of new ones."""
    findings = {finding.series: finding for finding in find_conditions(rule, ended)}
    is_notice = rule.kind == AlertRule.Kind.RUN_ENDED
    open_alerts = Alert.objects.filter(rule=rule, resolved_at=None)
    if ended.run.state == Run.State.FINISHED:
        open_alerts.exclude(series__in=findings).update(resolved_at=timezone.now())
    still_open = set(open_alerts.values_list("series", flat=True))
    new = [finding for series, finding in findings.items() if series not in still_open]
    for finding in new:
        _open_alert(rule, ended.run, finding, resolved=is_notice)
    return len(new)


def _open_alert(rule: AlertRule, run: Run, finding: ConditionFinding, *, resolved: bool) -> None:
    alert = Alert.objects.create(
        rule=rule,
        run=run,
        series=finding.series,
        sentence=finding.sentence[:MAX_SENTENCE_CHARACTERS],
        resolved_at=timezone.now() if resolved else None,
    )
    channels = {
        AlertDelivery.Channel.WEBHOOK: rule.webhook_encrypted is not None,
        AlertDelivery.Channel.EMAIL: bool(rule.email),
    }
    AlertDelivery.objects.bulk_create(
        AlertDelivery(alert=alert, channel=channel, next_attempt_at=timezone.now())
        for channel, has_address in channels.items()
        if has_address
    )
