"""Function that starts the run that a form requests, or plans it."""

from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum

from django import forms
from django.contrib.auth.models import User

from toolbench.lab.accounts.audit import Action, record_action
from toolbench.lab.models import Run
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import LaunchError, Plan, RunRequest
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.runs.launch import launch
from toolbench.web.forms.errors import add_form_errors


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """Result of a form: a started run, a plan, or neither if the form has errors or is empty.

    Attributes:
        is_confirmed: whether the user has confirmed all paid requests of the plan.
    """

    run: Run | None = None
    plan: Plan | None = None
    is_confirmed: bool = False


class StartMode(Enum):
    """Action of a form's button: plan a run, start it, or start a run with one trial of each cell."""

    PLAN = "plan"
    ALL = "all"
    ONE_OF_EACH = "one"


def plan_or_launch(
    form: forms.Form, run_request: RunRequest | None, *, start: StartMode, owner: User | None
) -> LaunchResult:
    """Start the run that a form requests, or plan it.

    The run does not start if paid requests need confirmation and may exceed the number in the form's field `agreed`.

    Args:
        form: the form; errors of the lab are added to it.
        run_request: the request that the form describes; None if the form is empty or not valid.
        start: the action of the form's button.
        owner: the user, who will own the run; None only for StartMode.PLAN.

    Returns:
        The run, or the plan of all trials if no run started; neither if `run_request` is None or the lab refuses it.
    """
    if run_request is None:
        return LaunchResult()
    confirmed_requests = parse_whole_number(form.data.get("agreed", "")) or 0
    try:
        if start is not StartMode.PLAN:
            is_one_of_each = start is StartMode.ONE_OF_EACH
            launched_request = replace(run_request, trials=1, until={}) if is_one_of_each else run_request
            with suppress(PaidRequestsUnconfirmedError):
                run = launch(launched_request, owner=owner, confirmed_requests=confirmed_requests)
                record_action(owner, Action.LAUNCHED, f"run {run.pk}", f"/runs/{run.pk}/")
                return LaunchResult(run=run)
        plan = build_plan(run_request)
    except LaunchError as error:
        add_form_errors(form, error)
        return LaunchResult()
    return LaunchResult(plan=plan, is_confirmed=confirmed_requests >= plan.max_paid_requests)
