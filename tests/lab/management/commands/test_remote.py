"""`manage.py remote` against the real application on a real server."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django.live_server_helper import LiveServer

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial
from toolbench.lab.accounts.sign_in import get_first_owner
from toolbench.lab.accounts.tokens import Scope, create_api_token

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def token(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set a token in the environment and return it."""
    secret = create_api_token(get_first_owner(), "shell", Scope.values, None)[1]
    monkeypatch.setenv("TOOLBENCH_TOKEN", secret)
    return secret


def run_remote(server: LiveServer, *words: str) -> list[Any]:
    out = io.StringIO()
    call_command("remote", *words, "--server", server.url, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_remote_plans_launches_controls_and_lists_a_run(live_server: LiveServer, token: str) -> None:
    model = make_model(provider=make_provider("Mine", kind="simulated", service="simulated"))
    plan = json.dumps({"models": [model.pk], "scenarios": ["happy_path"], "trials": 1, "probe_unknown": False})
    assert run_remote(live_server, "plan", "--json", plan)[0]["trials"] == 1
    run_id = str(run_remote(live_server, "launch", "--json", plan, "--key", "k")[0]["id"])
    assert run_remote(live_server, "pause", run_id)[0]["state"] == "paused"
    assert run_remote(live_server, "resume", run_id)[0]["state"] == "running"
    assert run_remote(live_server, "cancel", run_id)[0]["state"] == "cancelled"
    assert run_remote(live_server, "wait", run_id)[0]["counts"]["cancelled"] == 1
    assert len(run_remote(live_server, "runs")) == 1


def test_remote_prints_a_line_for_each_trial(live_server: LiveServer, token: str) -> None:
    cell = make_cell(make_config(make_run()))
    trials = [make_trial(cell) for _ in range(3)]
    assert {line["id"] for line in run_remote(live_server, "trials", str(cell.run_id))} == {
        trial.pk for trial in trials
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["show"], "Add the number of the run"),
        (["show", "999999"], "There is no run 999999"),
        (["plan", "--json", "{"], "Expecting"),
        (["plan", "--json", "[]"], "in braces"),
        (["plan", "--json", '{"models": ["x"]}'], "as a whole number"),
    ],
)
def test_remote_explains_a_refused_action(live_server: LiveServer, token: str, words: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        run_remote(live_server, *words)


def test_remote_without_a_token_asks_for_one(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLBENCH_TOKEN", raising=False)
    with pytest.raises(CommandError, match="Set TOOLBENCH_TOKEN to a token"):
        run_remote(live_server, "runs")
