import asyncio
import json

from toolbench.providers.http.client import HttpClient
from toolbench.providers.http.exchange import Exchange
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedServer, chat_reply, text_reply, tool_call_reply


def send_requests(provider: ScriptedServer, times: int) -> list[Exchange]:
    async def send_all() -> list[Exchange]:
        async with HttpClient() as client:
            exchanges = [
                client.build_exchange(provider.endpoint(), "chat/completions", b'{"n": 1}') for _ in range(times)
            ]
            await asyncio.gather(*(client.send(exchange) for exchange in exchanges))
            return exchanges

    return asyncio.run(send_all())


def test_scripted_server_answers_in_order_and_then_refuses(provider: ScriptedServer) -> None:
    provider.set_script(text_reply("one"))
    assert send_requests(provider, 1)[0].status == 200
    (refused,) = send_requests(provider, 1)
    assert refused.status == 400
    assert b"no more answers" in refused.body


def test_scripted_server_answers_by_a_function_of_the_request() -> None:
    with ScriptedServer(lambda seen: text_reply(f"{seen.method} {seen.json()['n']}")) as provider:
        (exchange,) = send_requests(provider, 1)
    assert b"POST 1" in exchange.body


def test_scripted_server_listens_on_another_address() -> None:
    with ScriptedServer([text_reply("hello")], host="127.0.0.2") as provider:
        (exchange,) = send_requests(provider, 1)
        assert provider.base_url.startswith("http://127.0.0.2:")
    assert exchange.status == 200


def test_scripted_server_records_many_parallel_requests() -> None:
    with ScriptedServer(lambda seen: text_reply("hello")) as provider:
        exchanges = send_requests(provider, 50)
    assert {exchange.status for exchange in exchanges} == {200}
    assert len(provider.seen) == 50


def test_scripted_server_arrival_can_be_awaited(provider: ScriptedServer) -> None:
    provider.set_script(text_reply("hello"))
    send_requests(provider, 1)
    assert provider.arrived.acquire(timeout=5)


def test_tool_call_reply_and_chat_reply_have_the_form_of_the_wire() -> None:
    body = tool_call_reply(("f", {"a": 1}), ("g", {})).body
    assert isinstance(body, bytes)
    message = json.loads(body)["choices"][0]["message"]
    assert [call["id"] for call in message["tool_calls"]] == ["call_1", "call_2"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"a": 1}
    extra = chat_reply({"content": "x"}, finish_reason="length", system_fingerprint="fp").body
    assert isinstance(extra, bytes)
    assert json.loads(extra)["system_fingerprint"] == "fp"


def test_received_request_json_is_the_parsed_body() -> None:
    assert ReceivedRequest("POST", "/", {}, b'{"a": 1}').json() == {"a": 1}
