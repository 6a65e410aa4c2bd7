import asyncio
import json

import pytest

from toolbench.engine.types import JsonObject, Message
from toolbench.providers.rendered_prompt import fetch_rendered_prompt
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, error_reply, json_reply

MESSAGES: list[Message] = [{"role": "user", "content": "Use get_weather for Oslo."}]
TOOLS: list[JsonObject] = [{"type": "function", "function": {"name": "get_weather"}}]


def answer_with_prompt(seen: ReceivedRequest) -> ScriptedReply:
    body = seen.json()
    return json_reply({"prompt": json.dumps(body.get("tools", [])) + body["messages"][0]["content"]})


@pytest.mark.parametrize("suffix", ["", "/v1"])
def test_fetch_rendered_prompt_requests_a_path_beside_the_api(suffix: str) -> None:
    with ScriptedServer(answer_with_prompt) as provider:
        endpoint = provider.endpoint(base_url=provider.base_url + suffix)
        prompt = asyncio.run(fetch_rendered_prompt(endpoint, MESSAGES, TOOLS))
    assert prompt == json.dumps(TOOLS) + "Use get_weather for Oslo."
    assert provider.seen[0].path == "/apply-template"


def test_fetch_rendered_prompt_sends_the_query_of_the_endpoint(provider: ScriptedServer) -> None:
    provider.set_script(json_reply({"prompt": "Hello."}))

    assert asyncio.run(fetch_rendered_prompt(provider.endpoint(query="version=2"), MESSAGES, TOOLS)) == "Hello."
    assert provider.seen[0].path == "/apply-template?version=2"


@pytest.mark.parametrize(
    "answer", [error_reply(404), json_reply({"prompt": 1}), json_reply([]), ScriptedReply(body=b"<html>")]
)
def test_fetch_rendered_prompt_of_other_server_is_none(provider: ScriptedServer, answer: ScriptedReply) -> None:
    provider.set_script(answer)
    assert asyncio.run(fetch_rendered_prompt(provider.endpoint(), MESSAGES, TOOLS)) is None
