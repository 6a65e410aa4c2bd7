import asyncio
import json

from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.exchange import Exchange
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedServer, chat_reply, text_reply, tool_call_reply


def asked(provider: ScriptedServer, times: int) -> list[Exchange]:
    async def ask_together() -> list[Exchange]:
        async with HttpClient() as client:
            exchanges = [
                client.build_exchange(provider.endpoint(), "chat/completions", b'{"n": 1}') for _ in range(times)
            ]
            await asyncio.gather(*(client.send(exchange) for exchange in exchanges))
            return exchanges

    return asyncio.run(ask_together())


def test_answers_are_given_in_order_and_then_refused(provider: ScriptedServer) -> None:
    provider.set_script(text_reply("one"))
    assert asked(provider, 1)[0].status == 200
    (refused,) = asked(provider, 1)
    assert refused.status == 400
    assert b"no more answers" in refused.body


def test_a_function_of_the_request_may_answer() -> None:
    with ScriptedServer(lambda seen: text_reply(f"{seen.method} {seen.json()['n']}")) as provider:
        (exchange,) = asked(provider, 1)
    assert b"POST 1" in exchange.body


def test_server_listens_on_another_address_of_this_machine() -> None:
    with ScriptedServer([text_reply("hello")], host="127.0.0.2") as provider:
        (exchange,) = asked(provider, 1)
        assert provider.base_url.startswith("http://127.0.0.2:")
    assert exchange.status == 200


def test_many_requests_at_once_are_all_seen() -> None:
    with ScriptedServer(lambda seen: text_reply("hello")) as provider:
        exchanges = asked(provider, 50)
    assert {exchange.status for exchange in exchanges} == {200}
    assert len(provider.seen) == 50


def test_an_arrival_can_be_waited_for(provider: ScriptedServer) -> None:
    provider.set_script(text_reply("hello"))
    asked(provider, 1)
    assert provider.arrived.acquire(timeout=5)


def test_calls_and_extra_keys_have_the_shape_of_the_wire() -> None:
    body = tool_call_reply(("f", {"a": 1}), ("g", {})).body
    assert isinstance(body, bytes)
    message = json.loads(body)["choices"][0]["message"]
    assert [call["id"] for call in message["tool_calls"]] == ["call_1", "call_2"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"a": 1}
    extra = chat_reply({"content": "x"}, finish_reason="length", system_fingerprint="fp").body
    assert isinstance(extra, bytes)
    assert json.loads(extra)["system_fingerprint"] == "fp"


def test_a_request_shows_its_json() -> None:
    assert ReceivedRequest("POST", "/", {}, b'{"a": 1}').json() == {"a": 1}
