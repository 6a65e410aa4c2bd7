"""Actions of the run page: the fields that a confirmation sends again, the reason of a pause, refused values."""

import re

from django.contrib.auth.models import User
from django.test import Client

from tests.factories import make_cell, make_config, make_run
from tests.page_html import read_html
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


def test_refused_run_action_keeps_entered_values(owner_client: Client) -> None:
    run = make_run(state=Run.State.PAUSED, stopped_reason="cap", request_cap=50, requests_reserved=50)
    config = make_config(run)
    cells = [make_cell(config, scenario) for scenario in ("happy_path", "weather")]
    sent = {"action": "raise", "request_cap": "41"}
    page = read_html(owner_client.post(f"/runs/{run.pk}/act/", sent, follow=True))
    assert re.search(r'name="request_cap"[^>]*value="41"', page)
    sent = {"action": "add", "cell": str(cells[1].pk), "count": "1001"}
    page = read_html(owner_client.post(f"/runs/{run.pk}/act/", sent, follow=True))
    assert re.search(r'name="count"[^>]*value="1001"', page)
    options = page.partition('<select id="cell"')[2].partition("</select>")[0]
    assert re.findall(r'value="(\d+)"\s+selected', options) == [str(cells[1].pk)]
