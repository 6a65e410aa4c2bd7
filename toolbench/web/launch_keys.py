"""Idempotency keys of forms that launch runs: a form that is sent twice launches one run."""

from collections.abc import Iterator
from contextlib import contextmanager

from django import forms
from django.contrib import messages
from django.http import HttpRequest

from toolbench.lab.models import LaunchKey
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.query_params import clean_text
from toolbench.lab.runs.idempotent_launch import MAX_KEY_CHARACTERS, LaunchKeyError, use_launch_key
from toolbench.web.forms.start_run import LaunchResult, StartMode, plan_or_launch
from toolbench.web.requests import find_user

KEY_FIELD = "key"
USED_KEY = (
    "Nothing was sent: this form was sent before with other content, or its run was deleted. To send it as it is now, "
    "press the button again."
)
REUSED_KEY = "This form was sent before. This page shows what it started. To start another run, open the form again."
# Fields whose values may differ when a form is sent again.
_IGNORED_FIELDS = (KEY_FIELD, "agreed", "csrfmiddlewaretoken")


@contextmanager
def use_form_key(request: HttpRequest) -> Iterator[LaunchKey]:
    """Provide the launch key of a sent form, as `use_launch_key` does.

    The template tag `new_launch_key` writes the key into a field of the form, or into the URL of a button. If a run was
    launched with the key before, a message on the page says so. With a key, the block is one transaction. Without a
    key, the form launches a run each time, and the block is no transaction.

    Raises:
        LaunchKeyError: the form was sent before with other content, or its run or test case was deleted.
    """
    user = find_user(request)
    assert user is not None  # only a signed-in operator can launch runs
    key = request.POST.get(KEY_FIELD) or request.GET.get(KEY_FIELD, "")
    names = [name for name in request.POST if name not in _IGNORED_FIELDS]
    body = {"path": request.path, "fields": {name: request.POST.getlist(name) for name in names}}
    with use_launch_key(user, clean_text(key, MAX_KEY_CHARACTERS), body) as launch_key:
        if launch_key.run is not None:
            messages.info(request, REUSED_KEY)
        yield launch_key


def launch_form_once(
    request: HttpRequest, form: forms.Form, run_request: RunRequest | None, *, start: StartMode = StartMode.ALL
) -> LaunchResult:
    """Start the run that a sent form requests, as `plan_or_launch` does, once for each launch key.

    If the key cannot be used, a message on the page says so and the run is only planned.

    Returns:
        The run, which may have been started before, or the plan, or neither, as in `plan_or_launch`.
    """
    try:
        with use_form_key(request) as launch_key:
            if launch_key.run is not None:
                return LaunchResult(run=launch_key.run)
            result = plan_or_launch(form, run_request, start=start, owner=find_user(request))
            launch_key.run = result.run
            return result
    except LaunchKeyError:
        messages.error(request, USED_KEY)
    return plan_or_launch(form, run_request, start=StartMode.PLAN, owner=None)
