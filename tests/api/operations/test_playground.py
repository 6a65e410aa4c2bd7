"""Conversations of the playground through the API: started, continued, read, and kept as test cases."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.api.requests import ApiClient
from tests.lab.cases.weather_conversations import TOOL, model, server
from tests.lab.conftest import elsewhere
from tests.lab.scripted_runs import make_paid_model, run_worker_session
from toolbench.lab.models import AuditEntry, Case, Model, Run, Trial
from toolbench.providers.scripted_server import ScriptedServer

__all__ = ["elsewhere", "model", "server"]  # fixtures
pytestmark = pytest.mark.django_db(transaction=True)

MESSAGE: dict[str, Any] = {
    "message": "How is the weather in Berlin?",
    "tools": [TOOL],
    "results": {"get_weather": {"fixed": {"sky": "clear"}, "set": {"/asked/{city}": True}}},
}
Start = Callable[..., dict[str, Any]]


@pytest.fixture
def start(api: ApiClient, model: Model) -> Start:
    """Start a conversation and run a worker session that answers it."""

    def send(**members: Any) -> dict[str, Any]:
        sent: dict[str, Any] = api.post("/conversations", MESSAGE | {"model": model.pk} | members, status=201)
        run_worker_session(model)
        return sent

    return send


def test_conversation_api_starts_reads_continues_and_deletes(
    api: ApiClient, model: Model, server: ScriptedServer, start: Start
) -> None:
    sent = start(system="Be short.", trials=2)
    slug, (trial_id, repeat_id) = sent["conversation"], sent["trials"]
    assert (sent["message"], sent["run"]["purpose"], sent["run"]["trial_count"]) == (1, "playground", 2)
    found = api.get(f"/conversations/{slug}?trial={trial_id}")
    assert (found["waiting"], found["trial"], found["state"]) == (False, trial_id, {"asked": {"Berlin": True}})
    assert [message["role"] for message in found["history"]] == ["user", "assistant", "tool", "assistant"]
    assert [(row["id"], row["index"], row["outcome"]) for row in found["trials"]] == [
        (trial_id, 1, "pass"),
        (repeat_id, 2, "pass"),
    ]
    later = api.post(f"/conversations/{slug}/messages", {"message": "And in Rome?", "trial": trial_id}, status=201)
    assert (later["conversation"], later["message"], len(later["trials"])) == (slug, 2, 1)
    assert api.get(f"/conversations/{slug}")["waiting"]
    early = api.problem("POST", f"/conversations/{slug}/messages", {"message": "And in Oslo?"}, status=409)
    assert "Wait until" in early["detail"]
    run_worker_session(model)
    request = server.seen[-1].json()
    assert [message["content"] for message in (request["messages"][0], request["messages"][-1])] == [
        "Be short.",
        "And in Rome?",
    ]
    assert request["tools"][0]["function"]["name"] == "get_weather"
    assert api.get(f"/conversations/{slug}")["history"][-1]["content"] == "6 messages."
    (row,) = api.get("/conversations")
    assert (row["slug"], row["messages"], row["models"]) == (slug, 2, [model.name])
    assert api.send("DELETE", f"/conversations/{slug}").status_code == 204
    assert api.problem("GET", f"/conversations/{slug}", status=404)
    assert Run.objects.count() == 2


def test_conversation_api_sends_message_once_per_idempotency_key(api: ApiClient, model: Model, start: Start) -> None:
    body = MESSAGE | {"model": model.pk}
    sent = api.post("/conversations", body, status=201, idempotency_key="first")
    assert api.post("/conversations", body, idempotency_key="first") == sent
    answer = api.send("POST", "/conversations", body | {"message": "Another."}, idempotency_key="first")
    assert answer.status_code == 409
    run_worker_session(model)
    path, following = f"/conversations/{sent['conversation']}/messages", {"message": "And in Rome?"}
    later = api.post(path, following, status=201, idempotency_key="second")
    assert api.post(path, following, idempotency_key="second") == later  # although its answer has not ended
    run_worker_session(model)
    assert api.post(path, following | {"trial": None}, idempotency_key="second")["trials"] == later["trials"]
    assert (Run.objects.count(), Case.objects.get().current) == (2, 2)


def test_conversation_api_refused_message_saves_nothing(api: ApiClient, server: ScriptedServer) -> None:
    paid = make_paid_model(server)
    body = MESSAGE | {"model": paid.pk, "trials": 20, "turns": 50}
    unconfirmed = api.problem("POST", "/conversations", body, status=409)
    assert unconfirmed["agreed"] > 0
    assert "Give model" in api.problem("POST", "/conversations", MESSAGE, status=422)["detail"]
    unknown = api.problem("POST", "/conversations", MESSAGE | {"model": paid.pk, "method": "shouting"}, status=422)
    assert unknown["errors"]
    bad_tools = api.problem("POST", "/conversations", MESSAGE | {"model": paid.pk, "tools": [{}]}, status=422)
    assert bad_tools["errors"][0]["field"] == "tools"
    assert (Case.objects.count(), Run.objects.count(), AuditEntry.objects.count()) == (0, 0, 0)
    sent = api.post("/conversations", body | {"agreed": unconfirmed["agreed"]}, status=201)
    assert (sent["message"], len(sent["trials"])) == (1, 20)


def test_conversation_api_history_of_removed_bodies_is_null(api: ApiClient, start: Start) -> None:
    path = f"/conversations/{start()['conversation']}"
    Trial.objects.update(bodies_removed_at=timezone.now(), bodies_rule="Passed trials after 1 day")
    found = api.get(path)
    assert (found["history"], found["state"], len(found["trials"])) == (None, None, 1)
    refused = api.problem("POST", f"{path}/messages", {"message": "And in Rome?"}, status=422)
    assert "was removed by the rule" in refused["detail"]


def test_next_message_api_refuses_list_of_messages(api: ApiClient, start: Start) -> None:
    path = f"/conversations/{start()['conversation']}/messages"
    assert "in message" in api.problem("POST", path, {"messages": [{"role": "user"}]}, status=422)["detail"]
    assert api.problem("POST", path, {"message": "And?", "trial": 999_999}, status=404)


def test_conversation_api_saves_answer_as_case_and_runs_it(api: ApiClient, start: Start) -> None:
    sent = start()
    path = f"/conversations/{sent['conversation']}/trials/{sent['trials'][0]}"
    case = api.post(f"{path}/case", status=201)
    assert api.post(f"{path}/case") == case
    assert "Berlin" in json.dumps(api.get(f"/cases/{case['slug']}")["expect"])
    run = api.post(f"{path}/runs", {"trials": 3}, status=201, idempotency_key="thrice")
    assert api.post(f"{path}/runs", {"trials": 3}, idempotency_key="thrice")["id"] == run["id"]
    assert (run["purpose"], run["trial_count"]) == ("", 3)
    assert Trial.objects.filter(run=run["id"], scenario=case["slug"]).count() == 3
    assert api.problem("POST", path.replace("/trials/", "/trials/9") + "/case", status=404)


def test_conversation_api_saves_no_case_before_the_answer(api: ApiClient, model: Model) -> None:
    sent = api.post("/conversations", MESSAGE | {"model": model.pk}, status=201)
    path = f"/conversations/{sent['conversation']}/trials/{sent['trials'][0]}"
    assert "has not ended" in api.problem("POST", f"{path}/case", status=422)["detail"]
    assert "has not ended" in api.problem("POST", f"{path}/runs", {"trials": 3}, status=422)["detail"]
    run_worker_session(model)
    case = api.post(f"{path}/case", status=201)
    assert "Berlin" in json.dumps(api.get(f"/cases/{case['slug']}")["expect"])


def test_conversation_api_from_trial_copies_its_message(
    api: ApiClient, model: Model, server: ScriptedServer, start: Start
) -> None:
    trial_id = start()["trials"][0]
    again = api.post("/conversations", {"from_trial": trial_id, "system": "Be brief.", "trials": 5}, status=201)
    run_worker_session(model)
    assert len(again["trials"]) == 5
    messages = server.seen[-1].json()["messages"]
    assert [message["content"] for message in messages[:2]] == ["Be brief.", MESSAGE["message"]]
    assert "no trial" in api.problem("POST", "/conversations", {"from_trial": 999_999}, status=422)["detail"]
