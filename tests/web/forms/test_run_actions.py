"""Actions of the run page: the fields that a confirmation sends again, and the reason of a pause."""

from django.contrib.auth.models import User

from tests.factories import make_run
from toolbench.lab.models import Run
from toolbench.web.forms.run_actions import parse_action


def test_repeated_fields_contain_limits_without_which_they_would_be_lifted() -> None:
    sent = {"action": "raise", "request_cap": "900", "token_cap": "", "csrfmiddlewaretoken": "x", "agreed": "1"}
    assert parse_action(sent).repeated_fields == {"action": "raise", "request_cap": "900", "token_cap": ""}


def test_pause_stores_name_of_user_as_reason(owner: User) -> None:
    run = make_run(state=Run.State.RUNNING)
    parse_action({"action": "pause"}).execute(run.pk, owner)
    run.refresh_from_db()
    assert (run.state, run.stopped_reason) == (Run.State.PAUSED, "The user owner paused the run.")
