"""`manage.py eval` over real HTTP: its runs, its output and its exit codes."""

import json
import signal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from tests.lab.eval_command import evaluate
from tests.lab.scripted_runs import answer_correctly, make_paid_model, make_scripted_model
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.management.eval.request import NO_LIMIT_SECONDS
from toolbench.lab.models import Model, Probe, Provider, Run, ServiceAddress
from toolbench.lab.runs import limits
from toolbench.lab.worker.trial_plan import load_frozen_configs
from toolbench.providers.endpoint import Timeouts
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, error_reply, text_reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("eval_environment")]


def refuse_eval(**options: Any) -> CommandError:
    with pytest.raises(CommandError) as raised:
        evaluate(**options)
    return raised.value


def answer_without_patch(seen: ReceivedRequest) -> ScriptedReply:
    """Read the workspace and answer "Done." without a change; answer the control correctly."""
    return text_reply("Done.") if seen.json()["messages"][-1]["role"] == "tool" else answer_correctly(seen)


def test_eval_finishes_run_and_writes_report(scripted: ScriptedServer, tmp_path: Path) -> None:
    make_scripted_model(scripted)
    output = evaluate(out=str(tmp_path / "report"))
    run = Run.objects.get()
    assert (run.state, run.purpose, run.trials.filter(outcome="pass").count()) == (Run.State.FINISHED, "cli", 4)
    assert "tools: answered success 2/2" in output
    assert "8 files in" in output
    assert json.loads((tmp_path / "report" / "summary.json").read_text())["models"][0]["ok"] == 4


def test_eval_until_decided_runs_until_each_cell_is_decided() -> None:
    with ScriptedServer(answer_without_patch) as scripted:
        make_scripted_model(scripted)
        output = evaluate(until_decided="threshold,target=70", trials="40", verbosity=2)
    run = Run.objects.get()
    assert "2 cells, 20 to 80 trials" in output
    assert "happy_path: answered success 0/10 (0 %, 0 to 38, anytime-valid, 95 %)" in output
    assert "; decided: below the target" in output
    assert "; decided: at or above the target" in output
    assert (run.state, run.trials.count()) == (Run.State.FINISHED, 25)


def test_eval_dry_run_stores_and_sends_nothing(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)
    assert "1 configuration, 2 cells, 4 trials" in evaluate(dry_run=True)
    assert (Run.objects.count(), scripted.seen) == (0, [])


def test_eval_fail_under_with_cell_below_exits_with_1() -> None:
    with ScriptedServer(answer_without_patch) as scripted:
        make_scripted_model(scripted)
        error = refuse_eval(fail_under="50")
    assert error.returncode == 1
    assert "scripted · default · production · native · happy_path: 0/2" in str(error)
    assert "chat_only" not in str(error)


def test_eval_fail_under_with_unanswered_cell_exits_with_1() -> None:
    with ScriptedServer(lambda seen: error_reply(401)) as scripted:
        make_scripted_model(scripted)
        error = refuse_eval(fail_under="1")
    assert (error.returncode, str(error).count("no answer")) == (1, 2)


def test_eval_fail_under_that_is_met_succeeds(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)
    assert "tools:" in evaluate(fail_under="100")


def test_eval_paid_requests_without_yes_exit_with_2(scripted: ScriptedServer) -> None:
    make_paid_model(scripted)
    error = refuse_eval(trials="30", yes=False)
    assert error.returncode == 2
    assert "Add --yes." in str(error)
    assert not Run.objects.exists()


def test_eval_paid_requests_with_yes_are_sent(scripted: ScriptedServer, settings: Settings) -> None:
    settings.CONFIRM_ABOVE_REQUESTS = 1
    make_paid_model(scripted)
    assert "tools:" in evaluate(yes=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"provider": "openrouter", "models": "stable"},
            "OPENROUTER_API_KEY is not set, and OpenRouter needs it. Set this variable.",
        ),
        ({"provider": "simulated", "models": "perfect"}, "The local server simulated is not running"),
        ({"models": "nobody", "provider": None}, "No model at OpenRouter matches 'nobody'"),
        ({"trials": "none"}, "--trials must be a whole number from 1"),
        ({"resume": 4711}, "There is no run 4711."),
    ],
)
def test_eval_impossible_options_exit_with_2_and_sentence(options: dict[str, Any], sentence: str) -> None:
    error = refuse_eval(**options)
    assert error.returncode == 2
    assert sentence in str(error)


def test_eval_unknown_policy_key_exits_with_2(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)
    error = refuse_eval(overrides='{"max_turn": 1}')
    assert (error.returncode, "max_turn: unknown key" in str(error)) == (2, True)


def test_eval_local_server_of_another_host_is_refused() -> None:
    ServiceAddress.objects.create(name="simulated", host="elsewhere", url="http://x", ready_at="2026-01-01T00:00Z")
    assert "runs on elsewhere" in str(refuse_eval(provider="simulated", models="perfect"))


def test_eval_out_folder_with_files_exits_with_2_and_sends_nothing(scripted: ScriptedServer, tmp_path: Path) -> None:
    make_scripted_model(scripted)
    (tmp_path / "old.json").write_text("{}")
    assert refuse_eval(out=str(tmp_path)).returncode == 2
    assert scripted.seen == []


def test_eval_sets_openrouter_from_environment(scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    Provider.objects.filter(template="openrouter").delete()
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-planted-0123456789")
    monkeypatch.setenv("OPENROUTER_BASE_URL", f"{scripted.base_url}/api/")
    monkeypatch.setenv("OPENROUTER_X_TITLE", "Mine")
    monkeypatch.setenv("OPENROUTER_TRIALS", "1")
    output = evaluate(provider=None, models="gpt", trials=None)
    assert "OpenRouter now has base_url, headers from the environment." in output
    headers = scripted.seen[0].headers
    assert (headers["authorization"], headers["x-title"]) == ("Bearer sk-or-planted-0123456789", "Mine")
    assert scripted.seen[0].path == "/api/v1/chat/completions"
    assert Run.objects.get().trial_count == 4


def test_eval_of_other_provider_leaves_openrouter_unchanged(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_scripted_model(scripted)
    before = Provider.objects.get(template="openrouter").base_url
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-planted-0123456789")
    monkeypatch.setenv("OPENROUTER_BASE_URL", "https://openrouter.test")
    output = evaluate(provider=model.provider.name, models=model.name)
    assert "from the environment" not in output
    assert Provider.objects.get(template="openrouter").base_url == before


@pytest.mark.parametrize(
    "options", [{"models": "opnai/typo"}, {"models": "gpt", "scenarios": "nowhere"}, {"resume": 99}]
)
def test_eval_refused_leaves_openrouter_unchanged(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    before = Provider.objects.get(template="openrouter").base_url
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-planted-0123456789")
    monkeypatch.setenv("OPENROUTER_BASE_URL", "https://openrouter.test")
    assert refuse_eval(provider=None, **options).returncode == 2
    assert Provider.objects.get(template="openrouter").base_url == before


def test_eval_refused_payment_leaves_openrouter_unchanged(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.CONFIRM_ABOVE_REQUESTS = 1
    before = Provider.objects.get(template="openrouter")
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-planted-0123456789")
    monkeypatch.setenv("OPENROUTER_BASE_URL", "https://openrouter.test")
    monkeypatch.setenv("OPENROUTER_X_TITLE", "Mine")
    out = StringIO()
    with pytest.raises(CommandError, match="Add --yes") as raised:
        call_command("eval", models="gpt", scenarios="happy_path", trials="1", stdout=out)
    after = Provider.objects.get(template="openrouter")
    assert raised.value.returncode == 2
    assert (after.base_url, after.header_names) == (before.base_url, before.header_names)
    assert not Run.objects.exists()
    assert "2 trials" in out.getvalue()
    assert "from the environment" not in out.getvalue()


def test_eval_resume_refused_leaves_limits_unchanged(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)
    refuse_eval(request_cap="3", token_cap="100000", jobs="1")
    run = Run.objects.get()
    assert refuse_eval(resume=run.pk, request_cap="3", token_cap="200000").returncode == 2
    run.refresh_from_db()
    assert (run.request_cap, run.token_cap) == (3, 100_000)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("OPENROUTER_BASE_URL", "https://user:planted@example.test/api"),
        ("OPENROUTER_BASE_URL", "https://example.test/sk-planted-key/api"),
        ("OPENROUTER_BASE_URL", "https://example.test/or-planted-0123456789"),
        ("OPENROUTER_API_PREFIX", "/or-planted-0123456789/v1"),
    ],
)
def test_eval_refuses_environment_address_with_secret(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "or-planted-0123456789")
    monkeypatch.setenv(variable, text)
    error = refuse_eval(provider=None, models="gpt")
    assert f"{variable} cannot be used" in str(error)
    assert "planted" not in str(error)


def test_eval_refuses_stored_key_for_address_of_another_host(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Provider.objects.filter(template="openrouter").update(key_source="stored", key_encrypted=encrypt("sk-stored"))
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-planted-0123456789")
    monkeypatch.setenv("OPENROUTER_BASE_URL", scripted.base_url)
    assert "stored key or headers of OpenRouter are for another host" in str(refuse_eval(provider=None, models="gpt"))
    assert scripted.seen == []


def test_eval_sends_provider_routing_to_openrouter(scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-planted-0123456789")
    monkeypatch.setenv("OPENROUTER_BASE_URL", scripted.base_url)
    evaluate(
        provider=None, models="x_ai", scenarios="chat_only", provider_only="one,two", temperature="0.5", probe=False
    )
    body = scripted.seen[0].json()
    assert (body["provider"], body["temperature"]) == ({"only": ["one", "two"]}, 0.5)


@pytest.mark.parametrize(("declined", "probes"), [(False, 1), (True, 0)])
def test_eval_probes_an_undeclared_model_first_unless_declined(
    scripted: ScriptedServer, declined: bool, probes: int
) -> None:
    make_scripted_model(scripted)
    evaluate(**({"probe": False} if declined else {}))
    offered = [tool["function"]["name"] for tool in scripted.seen[0].json().get("tools", [])]
    assert (Probe.objects.count(), "probe_echo" in offered) == (probes, not declined)
    assert Run.objects.get().state == "finished"


def test_eval_limits_are_frozen_with_run_not_provider(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, concurrency=5)
    evaluate(jobs="1", read_timeout="0", open_timeout="3")
    run = Run.objects.get()
    assert set(run.trials.values_list("concurrency", flat=True)) == {1}
    assert (run.jobs, run.read_seconds, run.connect_seconds) == (1, NO_LIMIT_SECONDS, 3)
    config = load_frozen_configs(run.configs.values_list("pk", flat=True)).popitem()[1]
    provider_timeouts = Timeouts(connect=7, read=8)
    assert config.build_timeouts(provider_timeouts) == Timeouts(
        connect=3, read=NO_LIMIT_SECONDS, deadline=run.deadline_seconds
    )
    provider = Provider.objects.get(pk=model.provider_id)
    assert (provider.concurrency, provider.read_seconds, provider.connect_seconds) == (5, None, None)


def test_eval_at_request_limit_exits_with_3_and_resumes(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)
    error = refuse_eval(request_cap="3", jobs="1")
    run = Run.objects.get()
    assert error.returncode == 3
    assert f"manage.py eval --resume {run.pk} --request-cap N" in str(error)
    assert "The limit of 3 requests is reached" in str(refuse_eval(resume=run.pk))
    evaluate(resume=run.pk, request_cap="100")
    run.refresh_from_db()
    assert (run.state, run.trials.filter(outcome="pass").count()) == (Run.State.FINISHED, 4)


def test_eval_interrupt_pauses_run_after_trials_in_flight() -> None:
    def interrupt(seen: ReceivedRequest) -> ScriptedReply:
        signal.raise_signal(signal.SIGINT)
        return text_reply("Done.")

    with ScriptedServer(interrupt) as scripted:
        make_scripted_model(scripted)
        error = refuse_eval(scenarios="chat_only", trials="40", jobs="1", probe=False)
    run = Run.objects.get()
    assert error.returncode == 3
    assert f"Continue it with `manage.py eval --resume {run.pk}`" in str(error)
    assert (run.state, run.trials.filter(state="running").count()) == (Run.State.PAUSED, 0)
    assert run.trials.filter(outcome="pass").exists()


def test_eval_resume_of_finished_run_is_refused(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)
    evaluate(trials="1")
    assert str(refuse_eval(resume=Run.objects.get().pk)).endswith("is finished, so it cannot be resumed.")


def test_eval_resume_continues_paused_run(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)
    refuse_eval(request_cap="1", jobs="1")
    run = Run.objects.get()
    limits.set_limits(run.pk, request_cap=None, token_cap=None)
    evaluate(resume=run.pk)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED


def test_eval_fallback_matrix_has_two_configurations_per_model(scripted: ScriptedServer) -> None:
    Model.objects.filter(pk=make_scripted_model(scripted).pk).update(workarounds=["content_tag_tool_call_fallback"])
    evaluate(fallback_matrix=True, trials="1")
    configs = Run.objects.get().configs.all()
    layers = {config.strategy: {name for name, _ in config.layers} for config in configs}
    tag = "workaround content_tag_tool_call_fallback"
    assert {name: tag in found for name, found in layers.items()} == {
        "production!content_tag_tool_call_fallback": False,
        "production+content_tag_tool_call_fallback": True,
    }


def test_eval_with_verbosity_0_prints_nothing(scripted: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    make_scripted_model(scripted)
    assert evaluate(verbosity=0) == ""
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "options",
    [
        {"dry_run": True, "resume": 1},
        {"models": "all,opnai/typo"},
        {"provider": "scripted,nowhere"},
        {"profiles": "default,nothing"},
        {"strategies": "raw,nothing"},
        {"method": "native,nothing"},
        {"scenarios": "happy_path,nowhere"},
        {"allow": "state_get,nothing"},
        {"overrides": '{"nothing": 1}'},
        {"overrides": '{"response_transforms": ["nothing"]}'},
    ],
)
def test_eval_unknown_word_exits_with_2_and_sends_nothing(scripted: ScriptedServer, options: Any) -> None:
    make_scripted_model(scripted)

    assert refuse_eval(**options).returncode == 2
    assert refuse_eval(**options | {"dry_run": True}).returncode == 2
    assert not Run.objects.exists()
    assert not scripted.seen


def test_eval_unknown_preset_in_environment_exits_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_EVAL_PRESET", "ful")

    error = refuse_eval()

    assert error.returncode == 2
    assert "OPENROUTER_EVAL_PRESET must be one of full, all, not 'ful'" in str(error)


def test_eval_unwritable_file_exits_with_3_and_writes_the_others(scripted: ScriptedServer, tmp_path: Path) -> None:
    make_scripted_model(scripted)
    (tmp_path / "file").touch()
    paths = {name: tmp_path / "file" / name for name in ("out", "junit")}
    markdown = tmp_path / "cells.md"
    error = refuse_eval(**{name: str(path) for name, path in paths.items()}, markdown=str(markdown))
    assert (error.returncode, str(error).count("The results of the run are kept.")) == (3, 2)
    assert all(f"{path} was not written" in str(error) for path in paths.values())
    assert "happy_path" in markdown.read_text()
    assert Run.objects.get().state == Run.State.FINISHED


def test_eval_cell_below_with_unwritable_file_exits_with_1(tmp_path: Path) -> None:
    with ScriptedServer(answer_without_patch) as scripted:
        make_scripted_model(scripted)
        error = refuse_eval(fail_under="50", junit=str(tmp_path))
    assert error.returncode == 1
    assert f"{tmp_path} was not written" in str(error)
    assert "happy_path: 0/2" in str(error)
