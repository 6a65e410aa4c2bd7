"""Providers, models and probes through the API."""

import json
from dataclasses import fields

import pytest

from tests.api.requests import ApiClient
from tests.factories import make_model, make_provider
from toolbench.api.operations.providers import ProviderBody
from toolbench.lab.endpoints.connect import ConnectionSettings
from toolbench.lab.endpoints.network import NetworkSettings
from toolbench.lab.models import AuditEntry, Model, Probe, Provider
from toolbench.providers.scripted_server import ScriptedServer, json_reply

pytestmark = pytest.mark.django_db
KEY = "sk-not-in-any-answer-1234"


def test_provider_api_never_returns_key_or_header_values(api: ApiClient) -> None:
    body = {"name": "Mine", "base_url": "http://127.0.0.1:9", "key": KEY, "headers": {"x-team": "hidden-value"}}
    made = api.post("/providers", body, status=201)
    assert made["key"] == "stored, encrypted"
    assert made["header_names"] == ["x-team"]
    address = f"/providers/{made['id']}"
    for path in ("/providers", address):
        content = api.send("GET", path).content
        assert KEY.encode() not in content
        assert b"hidden-value" not in content
    changed = api.send("PATCH", address, {"remove_key": True})
    assert json.loads(changed.content)["key"] == "none needed"
    assert api.send("DELETE", address).status_code == 204
    assert not Provider.objects.filter(name="Mine").exists()
    assert [str(entry) for entry in AuditEntry.objects.order_by("pk")] == [
        "owner added provider Mine", "owner entered a key for provider Mine", "owner changed provider Mine",
        "owner removed a key of provider Mine", "owner deleted provider Mine",
    ]  # fmt: skip


def test_provider_api_patch_keeps_omitted_settings(api: ApiClient) -> None:
    settings = {"base_url": "http://127.0.0.1:9", "budget_per_month": 5.0, "read_seconds": 7.0, "query": "a=1"}
    made = api.post("/providers", settings | {"name": "Mine", "proxy_url": "http://127.0.0.1:8"}, status=201)
    found = json.loads(api.send("PATCH", f"/providers/{made['id']}", {"concurrency": 3}).content)
    assert found == made | {"concurrency": 3}
    limits = {"adaptive": True, "requests_per_minute": 600, "tokens_per_minute": 90_000}
    assert json.loads(api.send("PATCH", f"/providers/{made['id']}", limits).content) == found | limits
    assert (found["budget_per_month"], found["read_seconds"], found["query"]) == (5.0, 7.0, "a=1")
    assert Provider.objects.get(pk=made["id"]).base_url == "http://127.0.0.1:9"


@pytest.mark.parametrize("template", ["deepseek", "openrouter", "azure"])
def test_provider_api_patch_keeps_blank_settings_of_template(api: ApiClient, template: str) -> None:
    made = api.post("/providers", {"template": template, "base_url": "https://x.test", "key": KEY}, status=201)
    provider = Provider.objects.filter(pk=made["id"])
    provider.update(api_prefix="", query="", key_header="")
    assert api.send("PATCH", f"/providers/{made['id']}", {"concurrency": 3}).status_code == 200
    assert provider.values_list("api_prefix", "query", "key_header", "concurrency").get() == ("", "", "", 3)


def test_provider_api_refuses_changes_of_builtin_provider(api: ApiClient) -> None:
    local = make_provider("Local", kind=Provider.Kind.LOCAL, service="local-own", base_url="")
    for body in ({"base_url": "https://api.openai.com", "key": KEY}, {"concurrency": 3}):
        problem = api.problem("PATCH", f"/providers/{local.pk}", body, status=409)
        assert "comes with Toolbench" in problem["detail"]
    assert "comes with Toolbench" in api.problem("DELETE", f"/providers/{local.pk}", status=409)["detail"]
    assert Provider.objects.filter(pk=local.pk, base_url="", key_encrypted=None, concurrency=8).exists()
    simulated = api.post("/providers", {"name": "Mine", "template": "simulated"}, status=201)
    assert api.send("PATCH", f"/providers/{simulated['id']}", {"concurrency": 3}).status_code == 200


def test_provider_body_has_every_connection_setting() -> None:
    settings = {field.name for field in fields(ConnectionSettings)} - {"network"}
    network = {"proxy": "proxy_url", "ca": "ca_pem"}
    settings |= {network.get(field.name, field.name) for field in fields(NetworkSettings)}
    assert settings == ProviderBody.model_fields.keys()


def test_provider_api_names_field_of_invalid_provider(api: ApiClient) -> None:
    problem = api.problem("POST", "/providers", {"name": "x", "base_url": "ftp://x"}, status=422)
    assert problem["errors"][0]["field"] == "base_url"


def test_provider_api_fills_blank_address_from_template(api: ApiClient) -> None:
    made = api.post("/providers", {"template": "openrouter", "key": KEY}, status=201)
    assert made["address"].startswith("https://openrouter.ai")


def test_offered_models_api_requests_and_adds_models(api: ApiClient) -> None:
    with ScriptedServer(lambda seen: json_reply({"data": [{"id": "m/one"}, {"id": "m/two"}]})) as server:
        provider = make_provider(base_url=server.base_url)
        assert api.get(f"/providers/{provider.pk}/offered")["names"] == []
        assert api.post(f"/providers/{provider.pk}/offered")["names"] == ["m/one", "m/two"]
    assert api.post(f"/providers/{provider.pk}/models", {"names": ["m/one"]})["sentence"] == "1 model added."
    assert api.get(f"/providers/{provider.pk}/offered?q=one")["added"] == ["m/one"]


def test_models_api_lists_and_changes_model(api: ApiClient) -> None:
    model = make_model("vendor/a")
    assert [row["name"] for row in api.get("/models?q=vendor")] == ["vendor/a"]
    assert api.send("PATCH", f"/models/{model.pk}", {"canonical": "a"}).status_code == 200
    assert api.get(f"/models/{model.pk}")["canonical"] == "a"
    assert api.problem("PATCH", f"/models/{model.pk}", {"canonical": "a" * 201}, status=422)
    settings = api.get(f"/models/{model.pk}/settings")
    body = {"version": settings["version"], "content": {"capabilities": {"tools": True}}}
    unknown = api.problem("PUT", f"/models/{model.pk}/settings", body, status=422)
    assert unknown["errors"] == [{"field": "tools", "message": "no capability is called tools."}]
    wrong = api.problem("PUT", f"/models/{model.pk}/settings", {"version": 1, "content": {"note": "x"}}, status=422)
    assert "Remove note" in wrong["detail"]
    whole = {"input": 1.0, "output": 2, "date": "2026-11-01", "source": "contract"}
    contents: list[dict[str, object]] = [
        {"workarounds": [{}]}, {"price": {"input": "x"}}, {"price": whole | {"input": True}},
        {"price": whole | {"output": 1e300}}, {"price": whole | {"source": [2]}}, {"price": whole | {"date": {}}},
        {"price": whole | {"date": "2999-01-01"}}, {"price": whole | {"date": "20261101"}},
        {"price": whole | {"more": 1}},
    ]  # fmt: skip
    for content in contents:
        body = {"version": settings["version"], "content": content}
        assert api.problem("PUT", f"/models/{model.pk}/settings", body, status=422)["errors"], content
    wrong = api.problem("PUT", f"/models/{model.pk}/settings", {"version": 1, "content": {"price": []}}, status=422)
    assert "Give price" in wrong["detail"]
    body = {"version": settings["version"], "content": {"capabilities": {"supports_tool_use": True}}}
    assert api.send("PUT", f"/models/{model.pk}/settings", body).status_code == 200
    assert api.get(f"/models/{model.pk}/settings")["content"]["capabilities"] == {"supports_tool_use": True}


def test_probe_api_queues_one_probe_per_model(api: ApiClient) -> None:
    model = make_model()
    (probe_id,) = api.post(f"/models/{model.pk}/probes", status=201)["ids"]
    found = api.get(f"/probes/{probe_id}")
    assert (found["state"], found["live"], found["checks"]) == ("queued", True, [])
    assert api.post(f"/models/{model.pk}/probes", status=201)["ids"] == [probe_id]
    assert "no" in api.problem("POST", f"/probes/{probe_id}/adopt", status=409)["detail"].lower()
    assert api.problem("POST", f"/models/{model.pk}/omissions", status=409)
    assert Probe.objects.count() == 1


def test_probe_api_for_all_models_requires_confirmation(api: ApiClient) -> None:
    provider = make_provider()
    Model.objects.bulk_create(Model(provider=provider, name=f"m{number}") for number in range(40))
    problem = api.problem("POST", f"/providers/{provider.pk}/probes", {}, status=409)
    body = {"agreed": problem["agreed"]}
    assert len(api.post(f"/providers/{provider.pk}/probes", body, status=201)["ids"]) == 40
