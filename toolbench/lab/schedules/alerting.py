"""Check of ended runs against the alert rules: once for each run, and again if it was reopened and has ended again.

A rule has at most one open alert for each series.
"""

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from toolbench.lab.models import Alert, AlertDelivery, AlertRule, Run
from toolbench.lab.runs.local_demo import INTENT_PURPOSE, WEATHER_PURPOSE
from toolbench.lab.schedules.conditions import ConditionFinding, EndedRun, find_conditions
from toolbench.lab.schedules.series import load_series

MAX_RUNS_PER_CHECK = 20
MAX_SENTENCE_CHARACTERS = 500
# A run that was reopened is checked again: its check is older than its end.
_UNCHECKED = Q(state__in=Run.ENDED) & (Q(alerts_checked_at=None) | Q(alerts_checked_at__lt=F("finished_at")))


def check_ended_runs() -> int:
    """Check up to MAX_RUNS_PER_CHECK unchecked ended runs, oldest first; return the number of new alerts.

    Several processes may call it at once: a run that another process is checking is skipped.
    """
    run_ids = Run.objects.filter(_UNCHECKED).order_by("pk").values_list("pk", flat=True)
    return sum(_check_run(run_id) for run_id in list(run_ids[:MAX_RUNS_PER_CHECK]))


def _check_run(run_id: int) -> int:
    with transaction.atomic():
        runs = Run.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        run = runs.filter(_UNCHECKED, pk=run_id).first()
        if run is None:
            return 0
        count = sum(_check_rule(rule, ended) for ended, rule in _lock_rules(run))
        Run.objects.filter(pk=run_id).update(alerts_checked_at=Now())
    return count


def _lock_rules(run: Run) -> list[tuple[EndedRun, AlertRule]]:
    """Lock the rules that apply to the run, so that each alert is opened once.

    A run that was checked before is left to the rules that have checked no later run: their alerts are newer.

    Returns:
        The run with the series of its schedule, and the rule, for each active rule that existed when the run ended.
    """
    if run.imported or run.deleted_at or run.purpose in (WEATHER_PURPOSE, INTENT_PURPOSE):
        return []
    ended_at = run.finished_at or timezone.now()
    rules = AlertRule.objects.filter(active=True, created_at__lte=ended_at)
    rules = (
        rules.filter(Q(schedule=None) | Q(schedule=run.schedule_id)) if run.schedule_id else rules.filter(schedule=None)
    )
    if run.alerts_checked_at is not None:
        rules = _leave_out_rules_with_later_runs(rules, run)
    locked_rules = list(rules.select_for_update(of=("self",), no_key=True).order_by("pk"))
    if not locked_rules:
        return []
    ended = EndedRun(run, load_series(run.schedule) if run.schedule else ())
    return [(ended, rule) for rule in locked_rules]


def _leave_out_rules_with_later_runs(rules: QuerySet[AlertRule], run: Run) -> QuerySet[AlertRule]:
    """Return the rules without those that have checked a later run than this one."""
    later = Run.objects.filter(pk__gt=run.pk, imported=False, deleted_at=None).exclude(alerts_checked_at=None)
    if later.exists():
        rules = rules.exclude(schedule=None)
    return rules.none() if run.schedule_id and later.filter(schedule=run.schedule_id).exists() else rules


def _check_rule(rule: AlertRule, ended: EndedRun) -> int:
    """Open alerts for conditions that hold, and resolve alerts whose condition no longer holds.

    Alerts whose run was deleted are resolved too. A cancelled run resolves no others. A run that is checked again opens
    no second alert for a series. An alert that only says that a run has ended is resolved at once.

    Returns:
        The number of new alerts.
    """
    findings = {finding.series: finding for finding in find_conditions(rule, ended)}
    is_notice = rule.kind == AlertRule.Kind.RUN_ENDED
    open_alerts = Alert.objects.filter(rule=rule, resolved_at=None)
    open_alerts.exclude(run__deleted_at=None).update(resolved_at=timezone.now())
    if ended.run.state == Run.State.FINISHED:
        open_alerts.exclude(series__in=findings).update(resolved_at=timezone.now())
    known = Alert.objects.filter(Q(resolved_at=None) | Q(run=ended.run), rule=rule)
    known_series = set(known.values_list("series", flat=True))
    new_findings = [finding for series, finding in findings.items() if series not in known_series]
    for finding in new_findings:
        _open_alert(rule, ended.run, finding, resolved=is_notice)
    return len(new_findings)


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
