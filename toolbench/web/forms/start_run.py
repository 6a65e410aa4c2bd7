"""What becomes of a form that asks for a run: the run, or a plan of it to agree to."""

from contextlib import suppress
from dataclasses import dataclass

from django import forms
from django.contrib.auth.models import User

from toolbench.lab.confirmation import ConfirmationNeededError
from toolbench.lab.models import Run
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import LaunchError, Plan, RunRequest
from toolbench.lab.runs.launch import launch
from toolbench.lab.whole_numbers import parse_whole_number
from toolbench.web.forms.errors import add_form_errors


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """What came of the form: a started run, or a plan to look at, or neither where the form says what is wrong."""

    run: Run | None = None
    plan: Plan | None = None
    agreed: bool = False  # to all that the plan may have to pay for


def plan_or_launch(form: forms.Form, asked: RunRequest | None, *, start: bool, owner: User | None) -> LaunchResult:
    """Starts the run that the form asks for, or only plans it; neither where it asks for none. What the lab refuses is
    added to the form. Whoever agrees to what may cost money agrees to the number of paid requests that was shown, and
    to no greater one."""
    if asked is None:
        return LaunchResult()
    agreed = parse_whole_number(form.data.get("agreed", "")) or 0
    try:
        if start:
            with suppress(ConfirmationNeededError):
                return LaunchResult(run=launch(asked, owner=owner, agreed=agreed))
        plan = build_plan(asked)
    except LaunchError as refused:
        add_form_errors(form, refused)
        return LaunchResult()
    return LaunchResult(plan=plan, agreed=agreed >= plan.most_paid)
