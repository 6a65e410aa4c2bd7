"""`manage.py eval --server`: the server executes the run, the command checks the gates."""

from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django.live_server_helper import LiveServer

from tests.factories import make_model, make_run
from tests.lab.scripted_runs import make_scripted_model
from tests.worker_process import WorkerProcess
from toolbench.client import ToolbenchClient, connection
from toolbench.client.documents import RemoteCounts, RemotePlan, RemoteRun
from toolbench.lab.accounts.sign_in import get_first_owner
from toolbench.lab.accounts.tokens import Scope, create_api_token
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.cases.bfcl_import import import_bfcl
from toolbench.lab.management.eval.names import choose_models, choose_profiles, choose_scenarios, choose_strategies
from toolbench.lab.management.eval.options import EvalOptions
from toolbench.lab.management.eval.remote import RemoteRequest, plan_remotely
from toolbench.lab.models import Run
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer, json_reply

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


@pytest.fixture
def scripted_options(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the options that resume run 7 of a scripted installation, which is polled without pauses."""
    monkeypatch.setenv("VERBOSE", "1")
    monkeypatch.setattr(connection, "POLL_SECONDS", 0)
    return {"token": "tb_x", "resume": 7}


def build_run_reply(state: str) -> ScriptedReply:
    """Build the answer of GET /runs/7 for a run without configurations."""
    run = dict.fromkeys([field.name for field in fields(RemoteRun)], 0)
    texts = {"state": state, "stopped_reason": "", "created_at": "2026-11-25T12:00:00Z", "finished_at": None}
    counts = dict.fromkeys([field.name for field in fields(RemoteCounts)], 0)
    others: dict[str, Any] = {"configs": [], "failures": [], "retryable": 0, "resumable": 0, "seconds_left": None}
    return json_reply({"run": run | {"id": 7} | texts, "live": False, "counts": counts, **others})


def evaluate(options: dict[str, Any]) -> str:
    out = StringIO()
    call_command("eval", **options, stdout=out)
    return out.getvalue()


def test_remote_request_lines_count_what_they_do_not_name() -> None:
    skipped = [{"what": f"profile {number}", "why": "It is unknown."} for number in range(1, 8)]
    lines = RemoteRequest({}, RemotePlan([], 0, skipped, 0, 0, 0, {}, 0, None)).lines
    assert lines[-2:] == ("left out: profile 5. It is unknown.", "left out: 2 more")


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
    retired = make_model("acme/retired", provider=model.provider, tags=["stable"], retired=True)
    options = EvalOptions(models="stable,scripted", strategies="all,!raw", profiles="all,!creative")

    with ToolbenchClient(remote_options["server"], remote_options["token"]) as client:
        body = plan_remotely(client, options).body

    assert {model.pk, retired.pk} <= set(body["models"])
    assert sorted(body["models"]) == sorted(row.pk for row in choose_models(options))
    assert sorted(body["profiles"]) == sorted(choose_profiles(options.profiles))
    assert body["strategies"] == list(choose_strategies(options.strategies))


def test_plan_remotely_with_all_tools_allowed_sends_no_mask(
    remote_options: dict[str, Any], scripted: ScriptedServer
) -> None:
    make_scripted_model(scripted)
    options = EvalOptions(models="scripted", allow=("ALL",))

    with ToolbenchClient(remote_options["server"], remote_options["token"]) as client:
        assert plan_remotely(client, options).body["tool_allowlist"] == []


@pytest.mark.parametrize(("words", "slugs"), [("happy_path,chat_only", ["chat_only"]), ("happy_path", ["chat_only"])])
def test_plan_remotely_without_tools_plans_only_controls(
    remote_options: dict[str, Any], scripted: ScriptedServer, words: str, slugs: list[str]
) -> None:
    make_scripted_model(scripted)
    options = EvalOptions(models="scripted", scenarios=words, tool_use_mode="disabled")

    with ToolbenchClient(remote_options["server"], remote_options["token"]) as client:
        assert plan_remotely(client, options).body["scenarios"] == slugs == list(choose_scenarios(options))


def test_plan_remotely_finds_a_set_by_its_name(remote_options: dict[str, Any], scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)
    import_bfcl(["simple_python"], limit=2)
    options = EvalOptions(models="scripted", scenarios="happy_path,set:BFCL Simple_python")

    with ToolbenchClient(remote_options["server"], remote_options["token"]) as client:
        assert plan_remotely(client, options).plan.cells == 3


def test_eval_server_refuses_a_name_of_two_models(remote_options: dict[str, Any], scripted: ScriptedServer) -> None:
    provider = make_scripted_model(scripted).provider
    for name in ("acme/twin", "other/twin:free", "other/single"):
        make_model(name, provider=provider)

    with pytest.raises(CommandError, match="'twin' may be “acme/twin” or “other/twin”: write the whole name"):
        evaluate(remote_options | {"models": "twin", "dry_run": True})
    assert "1 configurations" in evaluate(remote_options | {"models": "single", "dry_run": True})


def test_eval_server_resume_raises_one_limit_and_keeps_the_other(
    remote_options: dict[str, Any], worker: WorkerProcess, scripted: ScriptedServer
) -> None:
    make_scripted_model(scripted)
    limits = {"request_cap": "3", "token_cap": "100000", "jobs": "1"}
    with pytest.raises(CommandError, match=r"Continue it with --resume \d+\.$") as raised:
        evaluate(remote_options | limits)
    run = Run.objects.get()
    assert (raised.value.returncode, run.state) == (3, Run.State.PAUSED)

    assert "happy_path: 3/3" in evaluate(remote_options | {"resume": run.pk, "request_cap": "100"})

    run.refresh_from_db()
    assert (run.state, run.request_cap, run.token_cap) == (Run.State.FINISHED, 100, 100_000)


def test_eval_server_resume_of_a_running_run_waits_for_it(
    remote_options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToolbenchClient, "wait_for_run", ToolbenchClient.get_run)
    run = make_run(state=Run.State.RUNNING)

    for limits in ({}, {"request_cap": "100"}):
        with pytest.raises(CommandError, match=f"Run {run.pk} is running") as raised:
            evaluate(remote_options | {"resume": run.pk} | limits)
        assert raised.value.returncode == 3


def test_eval_server_resume_confirms_paid_requests(scripted_options: dict[str, Any]) -> None:
    refusal = json_reply({"title": "Not confirmed", "detail": "May cost money.", "agreed": 300}, status=409)
    script = [build_run_reply("paused"), refusal]
    options = scripted_options | {"request_cap": "900"}

    with (
        ScriptedServer(script) as server,
        pytest.raises(CommandError, match=r"Up to 300 requests may cost money\. Add --yes") as raised,
    ):
        evaluate(options | {"server": server.base_url})
    with ScriptedServer([*script, build_run_reply("paused"), json_reply({}), build_run_reply("finished")]) as server:
        evaluate(options | {"server": server.base_url, "yes": True})

    assert raised.value.returncode == 2
    assert server.seen[3].json() == {"request_cap": 900, "token_cap": 0, "agreed": 300}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"models": "gpt-9"}, "No model on the server matches 'gpt-9'; there are scripted: "),
        ({"provider": "", "models": "reliable-*"}, "No model on the server matches"),
        ({"provider": "nowhere"}, "No provider on the server matches 'nowhere'"),
        ({"strategies": "!no_such"}, "Write names instead of !no_such in --strategies"),
        ({"out": "report"}, r"Leave --out \(OPENROUTER_REPORT_DIR\) out: it does not work with --server\."),
        ({"transforms": "none"}, r"Leave --transforms \(OPENROUTER_TRANSFORMS\) out: it does not work with --server\."),
        ({"resume": 12, "out": "report"}, r"Leave --out \(OPENROUTER_REPORT_DIR\) out: .* with --server\."),
        ({"resume": 12, "jobs": "2"}, r"Leave --jobs \(OPENROUTER_JOBS\) out: .* with --resume and --server\."),
        ({"resume": 12, "key": "job-1"}, "Leave --key out: "),
        ({"resume": 12, "read_timeout": "0"}, r"Leave --read-timeout \(OPENROUTER_CLIENT_READ_TIMEOUT\) out: "),
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


def test_eval_server_repeats_a_poll_that_fails(scripted_options: dict[str, Any], tmp_path: Path) -> None:
    junit = tmp_path / "cells.xml"
    running, finished = build_run_reply("running"), build_run_reply("finished")

    with ScriptedServer([running, running, ScriptedReply(503), finished]) as server:
        evaluate(scripted_options | {"server": server.base_url, "junit": str(junit)})

    assert 'errors="0"' in junit.read_text()


def test_eval_server_that_stops_answering_exits_with_3(
    scripted_options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_FAILING_SECONDS", 0)
    junit = tmp_path / "cells.xml"
    script = [build_run_reply("running"), *[ScriptedReply(503)] * 20]

    with (
        ScriptedServer(script) as server,
        pytest.raises(CommandError, match=r"Run 7 may still be running.* Continue it with --resume 7\.") as raised,
    ):
        evaluate(scripted_options | {"server": server.base_url, "junit": str(junit)})

    assert raised.value.returncode == 3
    assert "Run 7 may still be running" in junit.read_text()


def test_eval_server_whose_comparison_fails_says_so_and_exits_with_1(
    scripted_options: dict[str, Any], tmp_path: Path
) -> None:
    junit = tmp_path / "cells.xml"
    finished = build_run_reply("finished")

    with (
        ScriptedServer([finished, finished, finished, ScriptedReply(502)]) as server,
        pytest.raises(CommandError, match=r"^Run 7 is finished, but the comparison with run 5 failed: ") as raised,
    ):
        evaluate(scripted_options | {"server": server.base_url, "junit": str(junit), "baseline": "5"})

    assert raised.value.returncode == 1
    assert "Run 7 is finished, but" in junit.read_text()


def test_eval_server_with_a_key_launches_once(
    remote_options: dict[str, Any], scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToolbenchClient, "wait_for_run", ToolbenchClient.get_run)
    make_scripted_model(scripted)

    for _ in range(2):
        with pytest.raises(CommandError, match="is running"):
            evaluate(remote_options | {"key": "job-1"})

    assert Run.objects.count() == 1


def test_eval_with_a_key_and_without_a_server_is_refused(remote_options: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match="--key out: it works only with --server"):
        evaluate(remote_options | {"server": "", "key": "job-1"})
