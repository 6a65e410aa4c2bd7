"""Reports of runs over real HTTP: the case study's fields, masked keys, archive, folder and command."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.factories import make_cell, make_config, make_provider, make_run, make_step, make_trial, make_trials
from tests.lab.report_fields import read_fields
from tests.lab.scripted_runs import (
    PATCH_ARGUMENTS,
    answer_correctly,
    launch_run,
    make_scripted_model,
    run_worker_session,
)
from toolbench.lab.interchange.report.write import ReportError, iter_report_files, iter_report_zip, write_report
from toolbench.lab.models import Run
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, error_reply, text_reply

KEY = "sk-planted-0123456789abcdef"


def read_files(run: Run) -> dict[str, Any]:
    """Return the files of the report by name, with JSON parsed."""
    found = dict(iter_report_files(run.pk))
    return {
        name: json.loads(content) if name.endswith(".json") else content.decode() for name, content in found.items()
    }


def run_and_report(script: Any, **fields: Any) -> dict[str, Any]:
    """Run one trial of three scenarios and return the files of the report."""
    with ScriptedServer(script) as scripted:
        model = make_scripted_model(scripted, **fields)
        run = launch_run(model, scenarios=("happy_path", "long_arguments_guard", "chat_only"), trials=1)
        run_worker_session(model)
        return read_files(run)


@pytest.mark.django_db(transaction=True)
def test_report_trial_has_every_field_of_the_case_study() -> None:
    trial = run_and_report(answer_correctly)["scripted__happy_path__trial_01.json"]
    assert set(trial) == read_fields("trial") | {"toolbench"}
    assert (trial["ok"], trial["assistant_text"], trial["draft"]) == (True, "Done.", {"foo": "bar"})
    assert [message["role"] for message in trial["history"]] == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "assistant"),
    ]
    assert trial["toolbench"]["simulated"] is False
    assert trial["toolbench"]["outcome"] == "pass"


@pytest.mark.django_db(transaction=True)
def test_report_trace_has_an_entry_for_every_turn() -> None:
    trace = run_and_report(answer_correctly)["scripted__happy_path__trial_01.json"]["trace"]
    assert [entry["turn"] for entry in trace] == [0, 1, 2]
    assert set(trace[0]["request"]) == read_fields("request")
    assert (trace[0]["request"]["messages_count"], trace[0]["request"]["tools_count"]) == (2, 2)
    (call,) = trace[1]["tool_calls"]
    assert (call["name"], call["arguments_bytes"]) == ("state_patch", len(json.dumps(PATCH_ARGUMENTS)))
    assert trace[1]["tool_results"][0]["ok"] is True
    assert trace[2]["response_summary"]["usage"]["total_tokens"] == 15
    assert "tool_calls" not in trace[2]


@pytest.mark.django_db(transaction=True)
def test_report_trial_of_a_refused_request_has_status_and_body() -> None:
    trial = run_and_report(lambda request: error_reply(404, "no such model"))["scripted__happy_path__trial_01.json"]
    assert (trial["ok"], trial["error_status"], trial["error_category"]) == (False, 404, "NOT_FOUND")
    assert trial["error_body"] == {"error": {"message": "no such model", "code": 404}}
    assert json.loads(trial["error_raw_body"]) == trial["error_body"]
    assert trial["error"].startswith("NOT_FOUND: ")
    assert trial["trace"] == []


@pytest.mark.django_db(transaction=True)
def test_report_trial_without_tool_calls_has_category_no_tool_calls() -> None:
    trial = run_and_report(lambda request: text_reply("Done."))["scripted__happy_path__trial_01.json"]
    assert (trial["error_category"], trial["error_status"], trial["error_body"]) == ("NO_TOOL_CALLS", None, None)
    assert trial["draft"] == {}


@pytest.mark.django_db(transaction=True)
def test_report_trial_escapes_nul_and_lone_surrogates() -> None:
    text = "a\x00b\ud800c</script>"
    with ScriptedServer(lambda request: text_reply(text)) as scripted:
        model = make_scripted_model(scripted)
        run = launch_run(model, scenarios=("chat_only",), trials=1)
        run_worker_session(model)
        content = dict(iter_report_files(run.pk))["scripted__chat_only__trial_01.json"]
    assert content.isascii()
    assert rb"a\u0000b\ud800c" in content
    assert json.loads(content)["assistant_text"] == text
    assert json.loads(content)["history"][-1]["content"] == text


@pytest.mark.django_db(transaction=True)
def test_report_masks_a_key_that_the_endpoint_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    def echo_key(request: ReceivedRequest) -> ScriptedReply:
        return (
            text_reply(f"I was sent {request.headers['authorization']}")
            if request.json().get("tools")
            else error_reply(400, KEY)
        )

    monkeypatch.setenv("PLANTED_KEY", KEY)
    found = run_and_report(echo_key, key_source="environment", key_env="PLANTED_KEY")
    assert len(found) == 7
    assert [name for name, content in found.items() if KEY in json.dumps(content)] == []


@pytest.mark.django_db
def test_report_masks_known_secrets_of_stored_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", KEY)
    make_provider("Planted", key_source="environment", key_env="PLANTED_KEY")
    run = make_run(title=f"Run of {KEY}")
    trial = make_trial(make_cell(make_config(run)), "fail", sentence=f"refused {KEY}")
    make_step(trial, bodies={"request": b'{"messages": [{"role": "user", "content": "%s"}]}' % KEY.encode()})
    archive = zipfile.ZipFile(io.BytesIO(b"".join(iter_report_zip(run.pk))))
    contents = {name: archive.read(name) for name in archive.namelist()}
    assert [name for name, content in contents.items() if KEY.encode() in content] == []
    report = json.loads(next(content for name, content in contents.items() if "__trial_" in name))
    assert report["history"] == [{"role": "user", "content": "*" * len(KEY)}]


@pytest.mark.django_db
def test_report_names_simulated_runs_in_every_file() -> None:
    config = make_config(make_run(simulated=True))
    make_trials(make_cell(config), **{"pass": 1, "fail": 1})
    found = read_files(config.run)
    assert len(found) == 6
    assert "**Simulated.**" in found.pop("matrix.md")
    assert {content["toolbench"]["simulated"] for content in found.values()} == {True}


@pytest.mark.django_db
def test_report_counts_no_trials_that_did_not_run() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 1, "na": 1, "cancelled": 1, "queued": 1})
    found = read_files(config.run)
    assert [found[name]["ok"] for name in sorted(found) if "__trial_" in name] == [True, None, None]
    assert found["summary_by_scenario.json"]["happy_path"] == {"runs": 1, "ok": 1, "errors": {}}
    assert found["summary.json"]["toolbench"]["open_trials"] == 1


@pytest.mark.django_db
def test_report_history_excludes_steps_of_a_lost_execution() -> None:
    trial = make_trial(make_cell(make_config(make_run())), execution=2)
    make_step(trial, execution=1, bodies={"request": b'{"messages": [{"role": "lost"}]}'})
    make_step(trial, execution=2, bodies={"request": b'{"messages": [{"role": "user"}]}'})
    report = next(content for name, content in read_files(trial.run).items() if "__trial_" in name)
    assert report["history"] == [{"role": "user"}]


@pytest.mark.django_db
def test_report_history_of_an_unreadable_request_is_null() -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    make_step(trial, bodies={"request": b'{"messages": [{"role": "us', "facts": {"usage": {"cost": float("nan")}}})
    report = next(content for name, content in read_files(trial.run).items() if "__trial_" in name)
    assert report["history"] is None
    assert report["trace"][0]["request"]["messages_count"] == 0


@pytest.mark.django_db
def test_report_archive_has_the_same_files() -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 2})
    archive = zipfile.ZipFile(io.BytesIO(b"".join(iter_report_zip(config.run.pk))))
    folder = f"toolbench-run-{config.run.pk}/"
    found = {name.removeprefix(folder): archive.read(name) for name in archive.namelist()}
    assert found == dict(iter_report_files(config.run.pk))


@pytest.mark.django_db
def test_write_report_refuses_a_folder_with_files(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("{}")
    with pytest.raises(ReportError, match="not an empty folder"):
        write_report(make_run().pk, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]


@pytest.mark.django_db
def test_report_command_writes_the_files(tmp_path: Path) -> None:
    config = make_config(make_run())
    make_trials(make_cell(config), **{"pass": 1})
    call_command("report", str(config.run.pk), out=tmp_path / "new" / "folder")
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        "matrix.md",
        "summary.json",
        "summary_by_scenario.json",
        "summary_by_scenario_and_strategy.json",
        "vendor__model-a__happy_path__trial_01.json",
    ]


@pytest.mark.django_db
def test_report_of_an_unknown_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"There is no run 4711\."):
        call_command("report", "4711", out=tmp_path)
    with pytest.raises(ReportError):
        iter_report_zip(4711)
