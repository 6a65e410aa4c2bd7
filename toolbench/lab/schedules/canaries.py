"""Canaries of aliases, and their alarms.

A canary is a schedule that compares the configuration that an alias serves with an approved baseline run.
"""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet

from toolbench.lab.accounts.audit import Action, record_action
from toolbench.lab.models import Alert, AlertRule, AliasBinding, ModelAlias, Run, Schedule
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.schedules.edit import ScheduleSettings, create_schedule
from toolbench.lab.schedules.rules import RuleSettings, create_rule
from toolbench.lab.schedules.series import build_series_key
from toolbench.lab.serving.bindings import load_current_bindings, return_to_last_good
from toolbench.lab.worker.job_failures import record_failures

# Rules about success and time. Changed answers, infrastructure errors, cost and the end of a run raise no alarm.
ALARM_KINDS = (AlertRule.Kind.DRIFT, AlertRule.Kind.BELOW_TARGET, AlertRule.Kind.SLOW)


def create_canary(
    request: RunRequest, baseline: Run, settings: ScheduleSettings, *, owner: AbstractBaseUser | None
) -> Schedule:
    """Create a schedule with the approved run `baseline` as its baseline and a rule for drops of success.

    Raises:
        ScheduleError: the plan cannot be launched, or a setting is wrong.
    """
    with transaction.atomic():
        schedule = create_schedule(request, settings, owner=owner)
        schedule.baseline_runs.add(baseline)
        create_rule(schedule, RuleSettings(kind=AlertRule.Kind.DRIFT, threshold=None, webhook="", email=""))
    return schedule


def check_canaries() -> int:
    """Store the first alarm of each current binding.

    A binding with `returns_on_alarm` is then replaced by the last good one, if there is one. An error for one binding
    is logged and counted, and the others are still checked.

    Returns:
        The number of bindings with a new alarm.
    """
    count = 0
    for binding in load_current_bindings().values():
        if binding.canary_id and not binding.alarm:
            with record_failures("checking canaries of aliases"):
                count += _check_binding(binding)
    return count


def _check_binding(binding: AliasBinding) -> bool:
    """Store the alarm of a binding whose canary has an alert; return whether an alarm was stored."""
    alert = _find_alert(binding, Alert.objects.filter(created_at__gte=binding.created_at))
    if alert is None:
        return False
    with transaction.atomic():
        alias = ModelAlias.objects.select_for_update().filter(pk=binding.alias_id).first()
        current = alias.bindings.first() if alias else None
        if alias is None or current is None or current.pk != binding.pk or current.alarm:
            return False  # another process or a user was faster
        current.alarm, current.alarm_run = alert.sentence, alert.run
        current.save(update_fields=["alarm", "alarm_run"])
        if current.returns_on_alarm:
            _restore_last_good(alias)
    return True


def _restore_last_good(alias: ModelAlias) -> None:
    """Return to the last good binding, if there is one.

    A binding whose canary has an open alert is not good.
    """
    open_alerts = Alert.objects.filter(resolved_at=None)
    alerting_ids = [binding.pk for binding in alias.bindings.all() if _find_alert(binding, open_alerts)]
    if return_to_last_good(alias, alerting_ids) is not None:
        record_action(None, Action.CHANGED, f"alias {alias.name}: last good binding after an alarm")


def _find_alert(binding: AliasBinding, alerts: QuerySet[Alert]) -> Alert | None:
    """Return the first of `alerts` that is of the binding's canary and about the settings of the binding.

    A changed preset or profile changes the settings of the canary's runs, but not those that the alias serves. So an
    alert counts only if its run had the settings of the binding.
    """
    if binding.canary_id is None:
        return None
    canary_alerts = alerts.filter(rule__schedule=binding.canary_id, rule__kind__in=ALARM_KINDS)
    for alert in canary_alerts.select_related("run").order_by("pk"):
        configs = alert.run.configs.filter(model=binding.model_id, policy_hash=binding.policy_hash)
        if any(build_series_key(config) == alert.series for config in configs):
            return alert
    return None
