"""Start of a run from a form, or a plan of it to confirm."""

from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum

from django import forms
from django.contrib.auth.models import User

from toolbench.lab.accounts.audit import Action, record_action
from toolbench.lab.confirmation import ConfirmationNeededError
from toolbench.lab.models import Run
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import LaunchError, Plan, RunRequest
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.runs.launch import launch
from toolbench.web.forms.errors import add_form_errors


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """Result of a form: a started run, a plan, or neither if the form has errors or is empty."""

    run: Run | None = None
    plan: Plan | None = None
    agreed: bool = False  # to all that the plan may have to pay for


class StartMode(Enum):
    """What a button of the form does: only plan, start the run, or start a run with one trial of each cell."""

    PLAN = "plan"
    ALL = "all"
    ONE_OF_EACH = "one"


def plan_or_launch(
    form: forms.Form, run_request: RunRequest | None, *, start: StartMode, owner: User | None
) -> LaunchResult:
    """Start the run that the form requests, or only plan it. Errors of the lab are added to the form.

    The user confirms the number of paid requests that was shown, and no greater one. The plan is always that of all
    trials.
    """
    if run_request is None:
        return LaunchResult()
    agreed = parse_whole_number(form.data.get("agreed", "")) or 0
    try:
        if start is not StartMode.PLAN:
            is_one = start is StartMode.ONE_OF_EACH
            started = replace(run_request, trials=1, until={}) if is_one else run_request
            with suppress(ConfirmationNeededError):
                run = launch(started, owner=owner, agreed=agreed)
                record_action(owner, Action.LAUNCHED, f"run {run.pk}", f"/runs/{run.pk}/")
                return LaunchResult(run=run)
        plan = build_plan(run_request)
    except LaunchError as refused:
        add_form_errors(form, refused)
        return LaunchResult()
    return LaunchResult(plan=plan, agreed=agreed >= plan.most_paid)
