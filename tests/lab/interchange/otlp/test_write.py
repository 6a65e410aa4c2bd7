"""Trials as OTLP spans with the GenAI conventions, and the traffic drafts that Toolbench reads from them."""

import json
from typing import Any

import pytest

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_step, make_trial
from tests.lab.scripted_runs import (
    PATCH_ARGUMENTS,
    answer_correctly,
    launch_run,
    make_scripted_model,
    run_worker_session,
)
from toolbench.lab.interchange.bundle.selection import UnknownRunError
from toolbench.lab.interchange.otlp.write import TrialNotFoundError, iter_run_lines, render_trial_line
from toolbench.lab.interchange.traffic.drafts import import_traffic
from toolbench.lab.models import Run, TrafficDraft
from toolbench.providers.scripted_server import ScriptedServer, error_reply

KEY = "sk-planted-0123456789abcdef"
Span = dict[str, Any]


def run_scripted(script: Any, **fields: Any) -> Run:
    with ScriptedServer(script) as scripted:
        model = make_scripted_model(scripted)
        run = launch_run(model, **({"trials": 1} | fields))
        run_worker_session(model)
    return run


def read_spans(line: bytes) -> list[Span]:
    (resource,) = json.loads(line)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    return [span | {"values": read_values(span)} for span in scope["spans"]]


def read_values(span: Span) -> dict[str, Any]:
    return {entry["key"]: next(iter(entry["value"].values())) for entry in span["attributes"]}


@pytest.mark.django_db(transaction=True)
def test_otlp_trial_is_an_agent_span_with_its_steps_as_children() -> None:
    run = run_scripted(answer_correctly)
    (line,) = iter_run_lines(run.pk)
    agent, *steps = read_spans(line)
    assert (agent["name"], agent["kind"], agent["values"]["toolbench.outcome"]) == (
        "invoke_agent happy_path",
        1,
        "pass",
    )
    (event,) = agent["events"]
    assert (event["name"], read_values(event)["gen_ai.evaluation.score.label"]) == ("gen_ai.evaluation.result", "pass")
    names = ["chat scripted", "execute_tool state_get", "chat scripted", "execute_tool state_patch", "chat scripted"]
    assert [span["name"] for span in steps] == names
    assert {span["parentSpanId"] for span in steps} == {agent["spanId"]}
    assert {span["traceId"] for span in steps} == {agent["traceId"]}
    assert len({span["spanId"] for span in (agent, *steps)}) == 6
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in steps)


@pytest.mark.django_db(transaction=True)
def test_otlp_spans_have_the_attributes_of_the_genai_conventions() -> None:
    run = run_scripted(answer_correctly)
    (line,) = iter_run_lines(run.pk)
    _, _, _, chat, tool, _ = read_spans(line)
    values = chat["values"]
    assert (chat["kind"], values["gen_ai.operation.name"], values["gen_ai.request.model"]) == (3, "chat", "scripted")
    assert (values["gen_ai.usage.input_tokens"], values["server.address"]) == ("10", "127.0.0.1")
    assert values["gen_ai.response.finish_reasons"] == {"values": [{"stringValue": "tool_calls"}]}
    roles = [message["role"] for message in json.loads(values["gen_ai.input.messages"])]
    assert roles == ["system", "user", "assistant", "tool"]
    (answer,) = json.loads(values["gen_ai.output.messages"])
    (part,) = answer["parts"]
    assert (part["type"], part["name"], json.loads(part["arguments"])) == ("tool_call", "state_patch", PATCH_ARGUMENTS)
    assert json.loads(values["gen_ai.tool.definitions"])[0]["name"] == "state_get"
    assert json.loads(tool["values"]["gen_ai.tool.call.arguments"]) == PATCH_ARGUMENTS
    assert (tool["kind"], tool["values"]["gen_ai.tool.call.id"]) == (1, part["id"])


@pytest.mark.django_db(transaction=True)
def test_otlp_lines_import_as_traffic_drafts_with_equal_calls() -> None:
    run = run_scripted(answer_correctly, trials=3, scenarios=("happy_path", "chat_only"))
    result = import_traffic(b"".join(iter_run_lines(run.pk)), "run.otlp.jsonl")
    definitions = [json.loads(draft.definition) for draft in TrafficDraft.objects.all()]
    assert len(definitions) == 3
    for definition in definitions:
        assert definition["expect"]["calls"] == [{"name": "state_get", "arguments": {}}]
        assert [message["role"] for message in definition["messages"]] == ["system", "user"]
    reasons = {group.reason: group.count for group in result.skipped}
    assert reasons["the span is not a request to a model"] == 12
    assert reasons["the request has no tools"] == 3


@pytest.mark.django_db(transaction=True)
def test_otlp_span_of_a_refused_request_has_an_error_and_no_answer() -> None:
    run = run_scripted(lambda request: error_reply(503, "busy"))
    agent, chat = read_spans(next(iter(iter_run_lines(run.pk))))
    assert (chat["status"]["code"], chat["values"]["http.response.status_code"]) == (2, "503")
    assert "gen_ai.output.messages" not in chat["values"]
    assert chat["values"]["error.type"] == run.trials.get().steps.get().error_code
    assert (agent["status"]["code"], agent["events"]) == (2, [])


@pytest.mark.django_db
def test_otlp_span_labels_simulated_models_and_has_stable_ids() -> None:
    simulated = make_provider("Simulated models", kind="simulated")
    trial = make_trial(make_cell(make_config(make_run(simulated=True), make_model(provider=simulated))), "fail")
    line = render_trial_line(trial.pk)
    (agent,) = read_spans(line)
    assert agent["values"]["toolbench.simulated"] is True
    assert line == render_trial_line(trial.pk)
    assert len(agent["traceId"]) == 32


@pytest.mark.django_db
def test_otlp_spans_mask_a_known_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", KEY)
    make_provider(key_source="environment", key_env="PLANTED")
    trial = make_trial(make_cell(make_config(make_run())), "fail", sentence=f"It said {KEY}.")
    request = json.dumps({"messages": [{"role": "user", "content": f'say "{KEY}"'}]}).encode()
    make_step(trial, bodies={"request": request, "facts": {"text": KEY}})
    make_step(trial, kind="tool", tool_name="a", bodies={"request": KEY.encode(), "response": KEY.encode()})
    assert KEY.encode() not in render_trial_line(trial.pk)


@pytest.mark.django_db
def test_otlp_agent_span_ends_with_its_last_step() -> None:
    trial = make_trial(make_cell(make_config(make_run())), "pass", duration_ms=300.0)
    make_step(trial, started_ms=60_000.0, duration_ms=200.0)  # the wait for the rate limit is not part of the duration
    agent, step = read_spans(render_trial_line(trial.pk))
    assert agent["endTimeUnixNano"] == step["endTimeUnixNano"] == agent["events"][0]["timeUnixNano"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("request_body", "facts"),
    [
        (b"\x00\xff[", {"calls": [{"id": None, "name": None, "arguments": "{broken"}], "text": None}),
        (b'{"max_tokens": 1e400, "seed": 123456789012345678901234567890, "prompt": "a"}', {"text": "\ud800"}),
        (b'{"instructions": "be brief", "input": "hi"}', {"message": {"reasoning": "so"}, "text": "x"}),
        (b'{"temperature": 1%s}' % (b"0" * 400), {"calls": None, "findings": ["x", {}], "request_changes": 3}),
    ],
)
def test_otlp_spans_of_invalid_bodies_are_valid(request_body: bytes, facts: dict[str, Any]) -> None:
    trial = make_trial(make_cell(make_config(make_run())), "pass", duration_ms=None, started_at=None)
    make_step(trial, duration_ms=1e300, url="http://host:99999/", bodies={"request": request_body, "facts": facts})
    _, step = read_spans(render_trial_line(trial.pk))
    assert int(step["endTimeUnixNano"]) < 2**63
    assert "gen_ai.request.seed" not in step["values"]


@pytest.mark.django_db
def test_otlp_export_refuses_unknown_and_unfinished_trials() -> None:
    trial = make_trial(make_cell(make_config(make_run())), "running")
    with pytest.raises(TrialNotFoundError, match="not ended"):
        render_trial_line(trial.pk)
    with pytest.raises(TrialNotFoundError, match="no trial 999999"):
        render_trial_line(999_999)
    with pytest.raises(UnknownRunError):
        iter_run_lines(999_999)
