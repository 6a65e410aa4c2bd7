"""Check of each ended run against the alert rules, and again if it was reopened and has ended again.

A rule has at most one open alert for each series.
"""

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from toolbench.lab.models import Alert, AlertDelivery, AlertRule, Run
from toolbench.lab.models.runs import ALERTS_UNCHECKED
from toolbench.lab.runs.local_demo import DEMO_PURPOSES
from toolbench.lab.schedules.conditions import CONDITIONS, ConditionFinding, EndedRun, describe_end, find_conditions
from toolbench.lab.schedules.series import load_series
from toolbench.lab.worker.job_failures import record_failures

MAX_RUNS_PER_CHECK = 20
MAX_SENTENCE_CHARACTERS = 500
# Condition on runs that alert rules apply to.
_COVERED_BY_RULES = Q(imported=False, deleted_at=None) & ~Q(purpose__in=[*DEMO_PURPOSES, Run.PLAYGROUND])


def check_ended_runs() -> int:
    """Check up to MAX_RUNS_PER_CHECK unchecked ended runs, oldest first; return the number of new alerts.

    Several processes may call it at once: a run that another process is checking is skipped. An error for one run is
    logged and counted, and the others are still checked.
    """
    run_ids = Run.objects.filter(ALERTS_UNCHECKED).order_by("pk").values_list("pk", flat=True)
    count = 0
    for run_id in list(run_ids[:MAX_RUNS_PER_CHECK]):
        with record_failures("checking alert rules"):
            count += _check_run(run_id)
    return count


def _check_run(run_id: int) -> int:
    with transaction.atomic():
        runs = Run.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        run = runs.filter(ALERTS_UNCHECKED, pk=run_id).first()
        if run is None:
            return 0
        count = sum(_check_rule(rule, ended) for ended, rule in _lock_rules(run))
        Run.objects.filter(pk=run_id).update(alerts_checked_at=Now())
    return count


def _lock_rules(run: Run) -> list[tuple[EndedRun, AlertRule]]:
    """Lock the rules that apply to the run, so that each alert is opened once.

    Returns:
        A pair for each active rule that existed when the run ended: the run with the series of its schedule, and the
        rule.
    """
    if not Run.objects.filter(_COVERED_BY_RULES, pk=run.pk).exists():
        return []
    ended_at = run.finished_at or timezone.now()
    rules = AlertRule.objects.filter(active=True, created_at__lte=ended_at)
    rules = (
        rules.filter(Q(schedule=None) | Q(schedule=run.schedule_id)) if run.schedule_id else rules.filter(schedule=None)
    )
    locked_rules = list(rules.select_for_update(of=("self",), no_key=True).order_by("pk"))
    if not locked_rules:
        return []
    ended = EndedRun(run, load_series(run.schedule) if run.schedule else ())
    return [(ended, rule) for rule in locked_rules]


def _check_rule(rule: AlertRule, ended: EndedRun) -> int:
    """Open alerts for conditions that hold, and resolve alerts whose condition no longer holds.

    - An alert whose run was deleted is resolved by any check of the rule, other alerts only by the check of a finished
      run.
    - A run that is checked again opens no second alert for a series. If the rule has checked a later run by then, the
      run resolves no alerts, and a condition that needs a schedule is not checked.
    - An alert of the kind "run ended" is resolved at once. It is replaced if the run is checked again with another
      state.

    Returns:
        The number of new alerts.
    """
    needs_schedule = CONDITIONS[AlertRule.Kind(rule.kind)].needs_schedule
    was_checked = ended.run.alerts_checked_at is not None
    is_outdated = was_checked and _has_checked_later_run(rule, ended.run, needs_schedule)
    found = () if is_outdated and needs_schedule else find_conditions(rule, ended)
    findings = {finding.series: finding for finding in found}
    is_notice = rule.kind == AlertRule.Kind.RUN_ENDED
    if is_notice:
        same_state = Q(sentence__startswith=describe_end(ended.run))
        Alert.objects.filter(~same_state, rule=rule, run=ended.run).delete()
    open_alerts = Alert.objects.filter(rule=rule, resolved_at=None)
    open_alerts.exclude(run__deleted_at=None).update(resolved_at=timezone.now())
    if not is_outdated and ended.run.state == Run.State.FINISHED:
        open_alerts.exclude(series__in=findings).update(resolved_at=timezone.now())
    known = Alert.objects.filter(Q(resolved_at=None) | Q(run=ended.run), rule=rule)
    known_series = set(known.values_list("series", flat=True))
    new_findings = [finding for series, finding in findings.items() if series not in known_series]
    for finding in new_findings:
        _open_alert(rule, ended.run, finding, resolved=is_notice)
    return len(new_findings)


def _has_checked_later_run(rule: AlertRule, run: Run, needs_schedule: bool) -> bool:
    """Return whether the rule has checked a later run; cancelled runs do not count if the rule needs a schedule."""
    later = Run.objects.filter(_COVERED_BY_RULES, pk__gt=run.pk, alerts_checked_at__gte=rule.created_at)
    if rule.schedule_id:
        later = later.filter(schedule=rule.schedule_id)
    return (later.exclude(state=Run.State.CANCELLED) if needs_schedule else later).exists()


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
