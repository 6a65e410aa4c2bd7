"""Factories of schedules, their runs, rules and alerts for tests."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.lab.scripted_runs import build_request
from toolbench.lab.models import Alert, AlertDelivery, AlertRule, Model, Run, Schedule
from toolbench.lab.schedules.rules import RuleSettings, create_rule


def make_schedule(*models: Model, plan: dict[str, Any] | None = None, **fields: Any) -> Schedule:
    """Make a schedule that is due now, with a sufficient budget."""
    request = build_request(*models, **({"seed": None} | (plan or {}))) if models else None
    defaults: dict[str, Any] = {"name": "Core", "every_hours": 24, "requests_per_run": 1000}
    defaults |= {"requests_per_month": 100_000, "next_due_at": timezone.now() - timedelta(seconds=1)}
    return Schedule.objects.create(request=request.to_json() if request else {}, **(defaults | fields))


def add_run(
    schedule: Schedule | None, *counts: tuple[int, int], cell: dict[str, Any] | None = None, **fields: Any
) -> Run:
    """Make a finished run with one configuration for each (passed, failed)."""
    run = make_run(schedule=schedule, **fields)
    for number, (passed, failed) in enumerate(counts):
        config = make_config(run, make_model(f"vendor/model-{number}"))
        make_trials(make_cell(config, **(cell or {})), **{"pass": passed, "fail": failed})
    return run


def make_rule(
    kind: str, schedule: Schedule | None, threshold: float | None = None, *, active: bool = True, **addresses: str
) -> AlertRule:
    """Make a rule without a channel, or with the given webhook and e-mail address."""
    chosen = RuleSettings(kind, threshold, addresses.get("webhook", ""), addresses.get("email", ""))
    rule = create_rule(schedule, chosen)
    rule.active = active
    rule.save()
    return rule


def make_alert_delivery(run: Run, rule: AlertRule | None = None, channel: str = "webhook") -> AlertDelivery:
    """Make a message about a run that is due now."""
    rule = rule or make_rule("drift", make_schedule(), email="a@example.test")
    alert = Alert.objects.create(rule=rule, run=run, sentence="Success dropped.")
    return AlertDelivery.objects.create(alert=alert, channel=channel, next_attempt_at=timezone.now())
