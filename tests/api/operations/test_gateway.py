"""Aliases and traces of the gateway through the API."""

import json

import pytest

from tests.api.requests import ApiClient
from tests.factories import make_gateway_trace, make_model, make_provider
from tests.web.views.endpoints.test_gateway import measured
from toolbench.lab.models import AuditEntry, Model, ModelAlias, RunConfig, Schedule, TrafficDraft
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import save_record
from toolbench.lab.traces.search_text import GATEWAY_TRACES, update_search_texts

__all__ = ["measured"]  # a fixture
pytestmark = pytest.mark.django_db


@pytest.fixture
def model(db: None) -> Model:
    return make_model("vendor/m", provider=make_provider("Mine"))


def test_alias_api_adds_changes_rolls_back_and_deletes_alias(api: ApiClient, model: Model) -> None:
    added = api.post("/gateway/aliases", {"name": "weather", "model": model.pk, "method": "native"}, status=201)
    assert (added["model_name"], added["provider"], added["method"], added["config"]) == (
        "vendor/m",
        "Mine",
        "native",
        None,
    )
    assert api.get("/gateway/aliases") == [added]
    path = f"/gateway/aliases/{added['id']}"
    body = {"name": "weather", "model": model.pk, "method": "text_json", "binding": added["binding"]}
    answer = api.send("PUT", path, body)
    changed = json.loads(answer.content)
    assert (answer.status_code, changed["method"]) == (200, "text_json")
    assert api.problem("PUT", path, body, status=422)["errors"][0]["field"] == "binding"
    assert [row["method"] for row in api.get(f"{path}/bindings")] == ["text_json", "native"]
    assert api.post(f"{path}/roll-back", {"binding": added["binding"]})["method"] == "native"
    assert "no such binding" in api.problem("POST", f"{path}/roll-back", {"binding": 999_999}, status=409)["detail"]
    assert api.send("DELETE", path).status_code == 204
    assert not ModelAlias.objects.exists()
    assert AuditEntry.objects.count() == 4


def test_alias_api_names_invalid_field(api: ApiClient, model: Model) -> None:
    assert "Give model" in api.problem("POST", "/gateway/aliases", {"name": "weather"}, status=422)["detail"]
    body = {"name": "weather", "model": model.pk, "fallbacks": ["unknown"]}
    assert api.problem("POST", "/gateway/aliases", body, status=422)["errors"][0]["field"] == "fallbacks"
    assert api.problem("POST", "/gateway/aliases", {"name": "weather", "config": 999_999}, status=422)["errors"]
    assert api.problem("GET", "/gateway/aliases/999999/bindings", status=404)
    assert not ModelAlias.objects.exists()


def test_alias_api_refuses_values_that_differ_from_config(api: ApiClient, measured: RunConfig) -> None:
    other = make_model("vendor/m", provider=make_provider("Mine"))
    body = {"name": "weather", "config": measured.pk}
    for name, value in (("model", other.pk), ("profile", "cold"), ("strategy", "raw"), ("method", "text_json")):
        assert getattr(measured, {"model": "model_id"}.get(name, name)) != value
        problem = api.problem("POST", "/gateway/aliases", body | {name: value}, status=422)
        assert [error["field"] for error in problem["errors"]] == [name]
    added = api.post("/gateway/aliases", body, status=201)
    same = {name: added[name] for name in ("name", "model", "profile", "strategy", "method", "config", "binding")}
    assert api.send("PUT", f"/gateway/aliases/{added['id']}", same).status_code == 200


def test_promotion_api_binds_choice_of_record_with_canary(api: ApiClient, measured: RunConfig) -> None:
    record = save_record(DecideQuery(scope="demo", want="fastest"), owner=None)
    canary = {"every_hours": 12, "requests_per_run": 1_000, "requests_per_month": 20_000}
    body = {"alias": "weather", "record": record.pk, "canary": canary}
    promoted = api.post("/gateway/promotions", body, status=201)
    assert (promoted["name"], promoted["config"]) == ("weather", measured.pk)
    (binding,) = api.get(f"/gateway/aliases/{promoted['id']}/bindings")
    schedule = Schedule.objects.get(pk=binding["canary_id"])
    assert (schedule.name, schedule.every_hours, binding["decision_id"]) == ("Canary of weather", 12, record.pk)
    assert (binding["cause"], binding["who"]) == ("promoted", "owner")
    again = api.post("/gateway/promotions", {"alias": "weather", "record": record.pk}, status=201)
    assert again["id"] == promoted["id"]
    assert api.get(f"/gateway/aliases/{promoted['id']}/bindings")[0]["canary_id"] is None


def test_promotion_api_refused_promotion_saves_nothing(api: ApiClient, measured: RunConfig) -> None:
    record = save_record(DecideQuery(scope="demo", want="fastest"), owner=None)
    canary = {"requests_per_run": 1_000, "requests_per_month": 20_000}
    body = {"alias": "weather", "record": record.pk, "canary": canary}
    assert api.problem("POST", "/gateway/promotions", body | {"record": 999_999}, status=404)
    wrong_name = api.problem("POST", "/gateway/promotions", body | {"alias": "a b"}, status=422)
    assert wrong_name["errors"][0]["field"] == "alias"
    few = body | {"canary": canary | {"requests_per_month": 1}}
    assert api.problem("POST", "/gateway/promotions", few, status=422)["errors"][0]["field"] == "requests_per_month"
    RunConfig.objects.filter(pk=measured.pk).update(policy_hash="before")
    assert "A canary is not possible" in api.problem("POST", "/gateway/promotions", body, status=409)["detail"]
    assert not ModelAlias.objects.exists()
    assert not Schedule.objects.exists()


def test_traces_api_pages_and_searches_traces(api: ApiClient) -> None:
    traces = [make_gateway_trace(alias=name) for name in ("weather", "weather", "other")]
    page = api.get("/gateway/traces?alias=weather&limit=1")
    assert [row["id"] for row in page["items"]] == [traces[1].pk]
    later = api.get(f"/gateway/traces?alias=weather&limit=1&cursor={page['next']}")
    assert ([row["id"] for row in later["items"]], later["next"]) == ([traces[0].pk], None)
    assert api.get("/gateway/traces?q=other")["text_lag_seconds"] > 0
    update_search_texts(GATEWAY_TRACES)
    found = api.get("/gateway/traces?q=other")
    assert ([row["id"] for row in found["items"]], found["text_lag_seconds"]) == ([traces[2].pk], 0.0)
    assert "q alone" in api.problem("GET", "/gateway/traces?q=other&alias=other", status=422)["detail"]


def test_trace_api_returns_bodies_and_creates_one_draft(api: ApiClient) -> None:
    tool = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object"}}}
    request = {"model": "weather", "messages": [{"role": "user", "content": "Hello."}], "tools": [tool]}
    reply = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}
    bodies = {"client_request": json.dumps(request).encode(), "client_response": json.dumps(reply).encode()}
    path = f"/gateway/traces/{make_gateway_trace(**bodies).pk}"
    assert api.get(path)["bodies"] == ["client_request", "client_response"]
    assert api.send("GET", f"{path}/client_request").content == bodies["client_request"]
    assert "no body steps" in api.problem("GET", f"{path}/steps", status=404)["detail"]
    assert api.post(f"{path}/draft")["sentence"] == "A draft was made."
    assert "already" in api.post(f"{path}/draft")["sentence"]
    assert TrafficDraft.objects.count() == 1
    without_bodies = make_gateway_trace()
    assert api.problem("POST", f"/gateway/traces/{without_bodies.pk}/draft", status=409)
    without_answer = make_gateway_trace(client_request=b"{}", client_response=b"{}")
    problem = api.problem("POST", f"/gateway/traces/{without_answer.pk}/draft", status=409)
    assert "the record has no answer" in problem["detail"]
    assert AuditEntry.objects.count() == 1  # only of the draft that was made
    assert api.problem("GET", "/gateway/traces/999999", status=404)
