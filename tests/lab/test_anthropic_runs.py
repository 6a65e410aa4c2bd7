"""A run against an endpoint of Anthropic's Messages API, and a resent trial of it."""

import json

import pytest

from tests.engine.wire_formats.anthropic.sdk_types import parse_request
from tests.lab.scripted_runs import PATCH_ARGUMENTS, launch_run, make_scripted_model, run_worker_session
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.models import Step, StepBody, Trial
from toolbench.lab.runs.repeat import resend_trial
from toolbench.lab.traces.step_facts import load_details
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, json_reply

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "sk-ant-planted-secret"
THOUGHT = {"type": "thinking", "thinking": "One step at a time.", "signature": "c2ln"}
DONE = {"type": "text", "text": "Done."}


def answer_as_messages(seen: ReceivedRequest) -> ScriptedReply:
    """Solve the scenarios of the state group in three requests, with thinking before every call."""
    body = seen.json()
    assert parse_request(body) == body
    answered = len(body["messages"]) // 2
    name, arguments = ("state_patch", PATCH_ARGUMENTS) if answered else ("state_get", {})
    call = {"type": "tool_use", "id": f"toolu_{answered}", "name": name, "input": arguments}
    blocks, stop = ([DONE], "end_turn") if answered >= 2 else ([THOUGHT, call], "tool_use")
    usage = {"input_tokens": 9, "output_tokens": 3, "cache_read_input_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
    return json_reply({**head, "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage})


def test_anthropic_run_sends_messages_and_masks_key() -> None:
    with ScriptedServer(answer_as_messages) as scripted:
        model = make_scripted_model(scripted, wire="anthropic", key_source="stored", key_encrypted=encrypt(KEY))
        run = launch_run(model, trials=1, strategies=("production",))
        run_worker_session(model)
        again = resend_trial(Trial.objects.filter(run=run)[0].pk)
        run_worker_session(model)
        sent = {(seen.path, seen.headers["x-api-key"]) for seen in scripted.seen}
        last = next(seen.json() for seen in scripted.seen if len(seen.json()["messages"]) == 5)
    assert sent == {("/v1/messages", KEY)}
    assert last["messages"][1]["content"][0] == THOUGHT
    assert [trial.outcome for trial in Trial.objects.filter(run__in=[run, again])] == ["pass"] * 2
    assert len(set(Trial.objects.values_list("plan_hash", flat=True))) == 1
    assert set(Trial.objects.values_list("input_tokens", flat=True)) == {30}
    facts = [load_details(body.facts) for body in StepBody.objects.filter(step__kind=Step.Kind.EXCHANGE)]
    stored = json.dumps(facts) + "".join(str(bytes(body.request)) for body in StepBody.objects.all())
    assert KEY not in stored
    assert "x-api-key" in stored
