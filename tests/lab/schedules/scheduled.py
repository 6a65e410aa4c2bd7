"""Schedules for tests."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from tests.lab.scripted_runs import build_request
from toolbench.lab.models import Model, Schedule


def make_schedule(*models: Model, plan: dict[str, Any] | None = None, **fields: Any) -> Schedule:
    """A schedule that is due now, with a budget for everything."""
    request = build_request(*models, **({"seed": None} | (plan or {}))) if models else None
    defaults: dict[str, Any] = {"name": "Core", "every_hours": 24, "requests_per_run": 1000}
    defaults |= {"requests_per_month": 100_000, "next_due_at": timezone.now() - timedelta(seconds=1)}
    return Schedule.objects.create(request=request.to_json() if request else {}, **(defaults | fields))
