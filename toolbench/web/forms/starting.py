"""What becomes of a form that asks for a run: the run, or a plan of it to agree to."""

from dataclasses import dataclass

from django import forms
from django.contrib.auth.models import User

from toolbench.lab.launching.expansion import expand
from toolbench.lab.launching.launching import launch
from toolbench.lab.models import Run
from toolbench.lab.planning.run_request import ConfirmationNeeded, LaunchRefused, Plan, RunRequest
from toolbench.web.forms.refusals import show_refusal


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of the form: a started run, or a plan to look at, or neither where the form says what is wrong."""

    run: Run | None = None
    plan: Plan | None = None
    confirmed: bool = False  # the plan, as it stands


def answer_to(form: forms.Form, asked: RunRequest | None, *, start: bool, owner: User | None) -> Answer:
    """Starts the run that the form asks for, or only plans it; neither where it asks for none. What the lab refuses is
    added to the form. Whoever agrees to what may cost money agrees to the number of requests that was shown, and not
    to another."""
    if asked is None:
        return Answer()
    try:
        plan = expand(asked)
        confirmed = form.data.get("confirmed") == str(plan.most_requests)
        if start and (confirmed or not plan.needs_confirmation):
            return Answer(run=launch(asked, owner=owner, confirmed=confirmed))
    except LaunchRefused as refused:
        show_refusal(form, refused)
        return Answer()
    except ConfirmationNeeded:  # what it may cost has changed since the plan was made
        return Answer(plan=plan)
    return Answer(plan=plan, confirmed=confirmed)
