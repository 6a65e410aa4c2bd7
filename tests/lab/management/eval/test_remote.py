"""`manage.py eval --server`: the server executes the run, the command checks the gates."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django.live_server_helper import LiveServer

from tests.lab.scripted_runs import make_scripted_model
from tests.worker_process import WorkerProcess
from toolbench.client import ToolbenchClient
from toolbench.lab.accounts.sign_in import get_first_owner
from toolbench.lab.accounts.tokens import Scope, create_api_token
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.management.eval.names import choose_models, choose_profiles, choose_strategies
from toolbench.lab.management.eval.options import EvalOptions
from toolbench.lab.management.eval.remote import plan_remotely
from toolbench.lab.models import Run
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def remote_options(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the options of a small run through the API."""
    monkeypatch.setenv("VERBOSE", "1")
    load_builtin_data()
    token = create_api_token(get_first_owner(), "shell", Scope.values, None)[1]
    return {
        "server": live_server.url,
        "token": token,
        "provider": "scripted",
        "models": "scripted",
        "scenarios": "happy_path,chat_only",
        "trials": "3",
        "yes": True,
    }


def evaluate(options: dict[str, Any]) -> str:
    out = StringIO()
    call_command("eval", **options, stdout=out)
    return out.getvalue()


def test_eval_server_waits_for_the_run_and_checks_the_gates(
    remote_options: dict[str, Any], worker: WorkerProcess, scripted: ScriptedServer, tmp_path: Path
) -> None:
    make_scripted_model(scripted)
    first = evaluate(remote_options)
    baseline = Run.objects.get()
    junit = tmp_path / "cells.xml"

    second = evaluate(remote_options | {"baseline": str(baseline.pk), "fail_under": "100", "junit": str(junit)})

    assert "1 configurations, 2 cells, 6 trials" in first
    assert "happy_path: 3/3" in first
    assert f"against run {baseline.pk}, happy_path: 3/3 → 3/3" in second
    assert [run.state for run in Run.objects.all()] == [Run.State.FINISHED, Run.State.FINISHED]
    assert len({run.seed for run in Run.objects.all()}) == 1
    assert 'failures="0"' in junit.read_text()


def test_eval_server_dry_run_launches_nothing(remote_options: dict[str, Any], scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)

    assert "2 cells, 6 trials" in evaluate(remote_options | {"dry_run": True})
    assert not Run.objects.exists()


def test_plan_remotely_selects_the_same_as_local_words(
    remote_options: dict[str, Any], scripted: ScriptedServer
) -> None:
    model = make_scripted_model(scripted)
    model.tags = ["stable"]
    model.save()
    options = EvalOptions(models="stable,scripted", strategies="all,!raw", profiles="all,!creative")

    with ToolbenchClient(remote_options["server"], remote_options["token"]) as client:
        body = plan_remotely(client, options).body

    assert model.pk in body["models"]
    assert sorted(body["models"]) == sorted(row.pk for row in choose_models(options))
    assert sorted(body["profiles"]) == sorted(choose_profiles(options.profiles))
    assert body["strategies"] == list(choose_strategies(options.strategies))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"models": "gpt-9"}, "No model there matches 'gpt-9'; there are scripted: "),
        ({"provider": "", "models": "reliable-*"}, "No model there matches"),
        ({"provider": "nowhere"}, "No provider there matches 'nowhere'"),
        ({"strategies": "!no_such"}, "Write names instead of !no_such in --strategies"),
        ({"out": "report"}, "Leave --out out: it does not work with --server."),
        ({"scenarios": "no_such_task"}, "no_such_task"),
        ({"profiles": "no_such_profile"}, "no_such_profile"),
        ({"token": "tb_wrong"}, "token"),
        ({"baseline": "987654"}, "987654"),
    ],
)
def test_eval_server_refusal_exits_with_2_and_a_sentence(
    remote_options: dict[str, Any], scripted: ScriptedServer, options: dict[str, Any], sentence: str
) -> None:
    make_scripted_model(scripted)

    with pytest.raises(CommandError, match=sentence) as raised:
        evaluate(remote_options | options)

    assert (raised.value.returncode, Run.objects.count()) == (2, 0)
