"""Export of runs as logs of Inspect AI: a log for each configuration, which Toolbench can import again."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_step, make_trial
from tests.lab.scripted_runs import (
    PATCH_ARGUMENTS,
    answer_correctly,
    launch_run,
    make_scripted_model,
    run_worker_session,
)
from toolbench.lab.interchange.bundle.selection import BundleError, UnknownRunError
from toolbench.lab.interchange.import_run import import_run
from toolbench.lab.interchange.inspect_ai.write import iter_log_zip
from toolbench.lab.models import Run
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, error_reply, text_reply

KEY = "sk-planted-0123456789abcdef"
OUTCOMES = ("pass", "fail", "infra", "na", "cancelled", "pass")


def read_logs(run: Run, **options: Any) -> dict[str, bytes]:
    """Return the logs of the archive by name."""
    with zipfile.ZipFile(io.BytesIO(b"".join(iter_log_zip(run.pk, **options)))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read_members(log: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(log)) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def make_stored_run(**fields: Any) -> Run:
    """Make one configuration and one scenario with drawn instances, and a trial of each outcome."""
    config = make_config(make_run(instance_kind="drawn", **fields))
    cell = make_cell(config)
    for outcome in OUTCOMES:
        make_trial(cell, outcome)
    return config.run


@pytest.mark.django_db
def test_export_inspect_keeps_the_outcome_of_every_trial() -> None:
    run = make_stored_run()
    (log,) = read_logs(run).values()
    copy = import_run(io.BytesIO(log), "log.eval", owner=None)
    assert [trial.outcome for trial in copy.trials.order_by("position")] == list(OUTCOMES)
    assert [trial.task_pass for trial in copy.trials.order_by("position")] == [True, False, None, None, None, True]
    assert (copy.title, copy.state) == (f"{run} (Inspect AI)", "finished")


def answer_with_faults(request: ReceivedRequest) -> ScriptedReply:
    """Answer correctly, but with an empty text where no tool is offered and an error for one scenario's arguments."""
    if not request.json().get("tools"):
        return text_reply("")
    return error_reply(503, "busy") if b"request_id" not in request.body else answer_correctly(request)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("script", [answer_correctly, answer_with_faults])
def test_export_inspect_of_a_real_run_imports_equal_verdicts_and_steps(script: Any) -> None:
    with ScriptedServer(script) as scripted:
        model = make_scripted_model(scripted)
        run = launch_run(model, scenarios=("happy_path", "long_arguments_guard", "chat_only"), trials=2)
        run_worker_session(model)
    (log,) = read_logs(run).values()
    copy = import_run(io.BytesIO(log), "log.eval", owner=None)
    original = list(run.trials.order_by("position"))
    trials = list(copy.trials.order_by("position"))
    assert [trial.outcome for trial in trials] == [trial.outcome for trial in original]
    assert [bytes(trial.final_text) for trial in trials] == [bytes(trial.final_text) for trial in original]
    assert [trial.output_tokens for trial in trials] == [trial.output_tokens for trial in original]
    for trial, source in zip(trials, original, strict=True):
        assert list(trial.steps.values_list("kind", "tool_name")) == list(source.steps.values_list("kind", "tool_name"))


@pytest.mark.django_db(transaction=True)
def test_export_inspect_log_has_messages_calls_results_and_bodies() -> None:
    with ScriptedServer(answer_correctly) as scripted:
        model = make_scripted_model(scripted)
        run = launch_run(model, trials=1)
        run_worker_session(model)
    ((name, log),) = read_logs(run).items()
    assert name == f"{run.created_at:%Y-%m-%dT%H-%M-%S}_run-{run.pk}_01-scripted.eval"
    members = read_members(log)
    sample = members["samples/happy_path-parity_epoch_1.json"]
    kinds = [event["event"] for event in sample["events"]]
    assert kinds == ["model", "tool", "model", "tool", "model"]
    patch_event = sample["events"][2]
    (call,) = patch_event["output"]["choices"][0]["message"]["tool_calls"]
    assert (call["function"], call["arguments"], call["parse_error"]) == ("state_patch", PATCH_ARGUMENTS, None)
    assert patch_event["call"]["request"]["model"] == "scripted"
    assert patch_event["tools"][1]["parameters"]["properties"]["ops"]["type"] == "array"
    assert [message["role"] for message in sample["messages"]] == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "assistant"),
    ]
    assert sample["scores"]["toolbench"]["value"] == "C"
    assert sample["output"]["completion"] == "Done."
    assert sample["target"].startswith("state_patch")
    header = members["header.json"]
    assert (header["eval"]["model"], header["eval"]["dataset"]["samples"]) == ("scripted/scripted", 1)
    assert header["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 1.0
    assert [summary["id"] for summary in members["summaries.json"]] == ["happy_path-parity"]


@pytest.mark.django_db
def test_export_inspect_has_a_log_for_each_model_and_tags_simulated() -> None:
    run = make_run(simulated=True)
    simulated = make_provider("Simulated models", kind="simulated")
    for model in (make_model("perfect", provider=simulated), make_model("vendor/model-a")):
        make_trial(make_cell(make_config(run, model)), "pass")
    first, second = map(read_members, read_logs(run).values())
    assert first["header.json"]["eval"]["tags"] == ["toolbench", "simulated"]
    assert first["header.json"]["eval"]["metadata"]["simulated"] is True
    assert first["header.json"]["eval"]["task_display_name"].endswith("perfect (simulated)")
    assert first["header.json"]["eval"]["model"] == "simulated-models/perfect"
    assert second["header.json"]["eval"]["tags"] == ["toolbench"]


@pytest.mark.django_db
def test_export_inspect_writes_repeats_of_an_instance_as_epochs() -> None:
    run = make_run(instance_kind="drawn")
    cell = make_cell(make_config(run))
    for seed in (5, 5, 6):
        make_trial(cell, "pass", instance_seed=seed)
    (log,) = read_logs(run).values()
    names = [name for name in read_members(log) if name.startswith("samples/")]
    assert names == [f"samples/happy_path-{end}.json" for end in ("5_epoch_1", "5_epoch_2", "6_epoch_1")]


@pytest.mark.django_db
def test_export_inspect_masks_a_known_key_in_every_member(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", KEY)
    make_provider(key_source="environment", key_env="PLANTED")
    run = make_run(title=f"with {KEY}")
    trial = make_trial(make_cell(make_config(run)), "fail", sentence=f"It said {KEY}.", final_text=KEY.encode())
    request = json.dumps({"messages": [{"role": "user", "content": f"say {KEY}"}]}).encode()
    make_step(trial, bodies={"request": request, "response": b"data: " + KEY.encode(), "facts": {"text": KEY}})
    for log in read_logs(run).values():
        with zipfile.ZipFile(io.BytesIO(log)) as archive:
            assert len(archive.namelist()) == 4
            assert not any(KEY.encode() in archive.read(name) for name in archive.namelist())


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("request_body", "facts"),
    [
        (b"\x00\xff[", {"calls": [{"id": None, "name": None, "arguments": "{broken"}], "text": None}),
        (b'{"messages": [{"role": 7}], "tools": [{"function": {"parameters": {"type": "x", "items": 3}}}]}',
         {"calls": [{"id": "a", "name": "b", "arguments": [1]}], "text": "\ud800", "usage": {"input_tokens": 3}}),
        (b'{"tool_choice": {"type": "tool", "name": "b"}, "temperature": true, "seed": 1.5}', {}),
        (b"{}", {"calls": None, "usage": {"input_tokens": "many"}}),
    ],
)  # fmt: skip
def test_export_inspect_of_invalid_bodies_can_be_imported(request_body: bytes, facts: dict[str, Any]) -> None:
    trial = make_trial(make_cell(make_config(make_run())), "pass", duration_ms=None, started_at=None)
    make_step(trial, duration_ms=1e300, bodies={"request": request_body, "response": b"\xff", "facts": facts})
    make_step(trial, kind="tool", ok=False, error_code="TOOL_TIMEOUT", tool_name="b", bodies={"facts": {"call": {}}})
    (log,) = read_logs(trial.run).values()
    copy = import_run(io.BytesIO(log), "log.eval", owner=None)
    assert (copy.trials.get().outcome, copy.trials.get().steps.count()) == ("pass", 2)


@pytest.mark.django_db
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_export_inspect_answer_includes_reasoning_of_either_field(field: str) -> None:
    trial = make_trial(make_cell(make_config(make_run())), "pass")
    make_step(trial, bodies={"facts": {"text": "42", "message": {field: "six times seven"}}})
    (log,) = read_logs(trial.run).values()
    (event,) = read_members(log)["samples/happy_path-parity_epoch_1.json"]["events"]
    assert event["output"]["choices"][0]["message"]["content"] == [
        {"type": "reasoning", "reasoning": "six times seven"},
        {"type": "text", "text": "42"},
    ]


@pytest.mark.django_db
def test_export_inspect_separates_cached_tokens_and_import_adds_them() -> None:
    trial = make_trial(make_cell(make_config(make_run())), "pass", input_tokens=10, cached_tokens=4)
    usage = {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 4, "reasoning_tokens": None, "cost": 0.5}
    make_step(trial, bodies={"facts": {"usage": usage}})
    (log,) = read_logs(trial.run).values()
    (event,) = read_members(log)["samples/happy_path-parity_epoch_1.json"]["events"]
    usage_logged = event["output"]["usage"]
    assert (usage_logged["input_tokens"], usage_logged["input_tokens_cache_read"], usage_logged["total_cost"]) == (
        6,
        4,
        0.5,
    )
    copy = import_run(io.BytesIO(log), "log.eval", owner=None).trials.get()
    assert (copy.input_tokens, copy.output_tokens, copy.cached_tokens) == (10, 5, 4)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "status"),
    [("running", "started"), ("paused", "started"), ("finished", "success"), ("cancelled", "cancelled")],
)
def test_export_inspect_log_has_the_status_of_the_run(state: str, status: str) -> None:
    cell = make_cell(make_config(make_run(state=state)))
    for outcome in ("pass", "fail", "infra"):
        make_trial(cell, outcome)
    (log,) = read_logs(cell.run).values()
    header = read_members(log)["header.json"]
    assert (header["status"], header["results"]["completed_samples"], header["results"]["total_samples"]) == (
        status,
        2,
        3,
    )


@pytest.mark.django_db
def test_export_inspect_excludes_private_cases_unless_requested() -> None:
    run = make_stored_run()
    make_trial(make_cell(run.configs.get(), "a_case_of_my_own"), "pass")
    (log,) = read_logs(run).values()
    assert b"a_case_of_my_own" not in json.dumps(read_members(log)).encode()
    assert read_members(log)["header.json"]["eval"]["metadata"]["left_out"][2]["what"].startswith(
        "1 private test cases"
    )
    (full_log,) = read_logs(run, private=True).values()
    assert "samples/a_case_of_my_own-1_epoch_1.json" in read_members(full_log)
    with pytest.raises(UnknownRunError):
        iter_log_zip(999)


@pytest.mark.django_db
def test_export_inspect_command_writes_a_folder_or_refuses(tmp_path: Path) -> None:
    run = make_stored_run()
    output = io.StringIO()
    call_command("export_inspect", str(run.pk), "--out", str(tmp_path / "logs"), stdout=output)
    assert output.getvalue() == f"1 log: inspect view --log-dir {tmp_path / 'logs'}\n"
    assert [path.suffix for path in (tmp_path / "logs").iterdir()] == [".eval"]
    for run_id, folder, message in ((999, "new", "There is no run 999"), (run.pk, "logs", "not an empty folder")):
        with pytest.raises(CommandError, match=message):
            call_command("export_inspect", str(run_id), "--out", str(tmp_path / folder))
    make_trial(make_cell(make_config(make_run()), "a_case_of_my_own"), "pass")
    with pytest.raises(BundleError, match="private"):
        iter_log_zip(Run.objects.order_by("-pk")[0].pk)
