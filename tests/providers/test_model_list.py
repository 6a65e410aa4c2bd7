import asyncio

import pytest

from toolbench.providers.model_list import ProviderRequestError, list_models
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer, error_reply, json_reply


@pytest.mark.parametrize(
    "payload",
    [
        {"object": "list", "data": [{"id": "b"}, {"id": "a"}, {"id": "b"}]},
        {"data": ["b", "a"]},
        {"models": [{"name": "b"}, {"name": "a"}]},
        [{"id": "b"}, {"id": "a"}, {"type": "x"}, None, 7],
        {"data": [{"id": "b"}, {"id": "a", "error": None}], "error": None},
    ],
)
def test_list_models_reads_every_shape_in_the_providers_order(provider: ScriptedServer, payload: object) -> None:
    provider.set_script(json_reply(payload))
    assert asyncio.run(list_models(provider.endpoint())) == ("b", "a")
    assert (provider.seen[0].method, provider.seen[0].path) == ("GET", "/v1/models")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error_reply(401, "bad key"), "authentication"),
        (error_reply(404), "not_found"),
        (ScriptedReply(200, {"content-type": "text/html"}, b"<html></html>"), "not_an_answer"),
        (ScriptedReply(200, {}, b""), "not_an_answer"),
        (ScriptedReply(200, {}, b"{oops"), "not_an_answer"),
        (ScriptedReply(200, {}, b"null"), "not_an_answer"),
        (json_reply({"data": "many"}), "malformed_answer"),
        (json_reply({"error": {"message": "no", "code": 401}}), "authentication"),
        (json_reply([{"error": {"message": "API key not valid", "code": 400}}], status=400), "authentication"),
    ],
)
def test_list_models_answer_without_a_list_raises_its_error_code(
    provider: ScriptedServer, answer: ScriptedReply, code: str
) -> None:
    provider.set_script(answer)
    with pytest.raises(ProviderRequestError) as raised:
        asyncio.run(list_models(provider.endpoint(key="sk-secret-1234")))
    assert raised.value.error.code == code
    assert str(raised.value)


def test_list_models_of_an_unknown_host_raises_dns(provider: ScriptedServer) -> None:
    endpoint = provider.endpoint(base_url="http://nowhere.invalid")
    with pytest.raises(ProviderRequestError) as raised:
        asyncio.run(list_models(endpoint))
    assert raised.value.error.code == "dns"


def test_list_models_of_anthropic_sends_its_key_header_and_version(provider: ScriptedServer) -> None:
    provider.set_script(json_reply({"data": [{"id": "claude-test", "type": "model"}], "has_more": False}))
    assert asyncio.run(list_models(provider.endpoint(key="sk-ant-secret", wire="anthropic"))) == ("claude-test",)
    sent = {name.lower(): value for name, value in provider.seen[0].headers.items()}
    assert provider.seen[0].path == "/v1/models?limit=1000"
    assert (sent["x-api-key"], sent["anthropic-version"]) == ("sk-ant-secret", "2023-06-01")
    assert "authorization" not in sent
