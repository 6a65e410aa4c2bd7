"""A run against an endpoint of the Responses API, from the form of the provider to the stored trial."""

import json

import pytest
from django.test import Client

from tests.engine.wire_formats.responses.sdk_types import parse_request
from tests.lab.scripted_runs import PATCH_ARGUMENTS, launch_run, run_worker_session
from toolbench.lab.models import Model, Provider, Step, StepBody, Trial
from toolbench.lab.runs.repeat import resend_trial
from toolbench.lab.traces.step_facts import load_details
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, json_reply

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "sk-planted-secret-of-responses"
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAopaque"}
TEXT = {"type": "output_text", "text": "Done.", "annotations": []}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}


def answer_as_responses(seen: ReceivedRequest) -> ScriptedReply:
    """Solve the scenarios of the state group in three requests, with reasoning before every call."""
    body = seen.json()
    assert parse_request(body) == body
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    answered = sum(item["type"] == "function_call_output" for item in body["input"])
    name, arguments = ("state_patch", PATCH_ARGUMENTS) if answered else ("state_get", {})
    ids = {"id": f"fc_{answered}", "call_id": f"call_{answered}"}
    call = {"type": "function_call", **ids, "name": name, "arguments": json.dumps(arguments), "status": "completed"}
    usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    details = {"input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 1}}
    head = {"id": "resp_1", "object": "response", "status": "completed", "error": None, "model": body["model"]}
    return json_reply({**head, "output": [MESSAGE] if answered >= 2 else [REASONING, call], "usage": usage | details})


def connect(client: Client, scripted: ScriptedServer) -> Model:
    """Connect the endpoint with the form of a provider and its wire format."""
    form = {"name": "Gateway", "base_url": scripted.base_url, "wire": "responses", "key": KEY}
    response = client.post("/providers/new/", form)
    assert response.status_code == 302
    return Model.objects.create(provider=Provider.objects.get(name="Gateway"), name="gpt-scripted")


def test_responses_run_sends_reasoning_back_and_masks_key(owner_client: Client) -> None:
    with ScriptedServer(answer_as_responses) as scripted:
        model = connect(owner_client, scripted)
        run = launch_run(model, trials=1, strategies=("production",))
        run_worker_session(model)
        again = resend_trial(Trial.objects.filter(run=run)[0].pk)
        run_worker_session(model)
        sent = {(seen.path, seen.headers["authorization"]) for seen in scripted.seen if seen.path.endswith("responses")}
        inputs = [seen.json()["input"] for seen in scripted.seen if seen.path.endswith("responses")]
    assert sent == {("/v1/responses", f"Bearer {KEY}")}
    last = next(items for items in inputs if len(items) == 7)
    assert [last[1], last[4]] == [REASONING] * 2
    trials = Trial.objects.filter(run__in=[run, again])
    assert [trial.outcome for trial in trials] == ["pass"] * 2
    assert set(trials.values_list("input_tokens", flat=True)) == {30}
    facts = [load_details(body.facts) for body in StepBody.objects.filter(step__kind=Step.Kind.EXCHANGE)]
    stored = json.dumps(facts) + "".join(str(bytes(body.request)) for body in StepBody.objects.all())
    assert KEY not in stored
    for trial in trials:
        assert owner_client.get(f"/trials/{trial.pk}/").status_code == 200
