import asyncio
import json

from toolbench.providers.http.client import Door
from toolbench.providers.http.exchange import Exchange
from toolbench.providers.scripted_server import ScriptedProvider, Seen, calls, completion, says


def asked(provider: ScriptedProvider, times: int) -> list[Exchange]:
    async def ask_together() -> list[Exchange]:
        async with Door() as door:
            exchanges = [door.open(provider.endpoint(), "chat/completions", b'{"n": 1}') for _ in range(times)]
            await asyncio.gather(*(door.carry(exchange) for exchange in exchanges))
            return exchanges

    return asyncio.run(ask_together())


def test_answers_are_given_in_order_and_then_refused(provider: ScriptedProvider) -> None:
    provider.plays(says("one"))
    assert asked(provider, 1)[0].status == 200
    (refused,) = asked(provider, 1)
    assert refused.status == 400
    assert b"no more answers" in refused.body


def test_a_function_of_the_request_may_answer() -> None:
    with ScriptedProvider(lambda seen: says(f"{seen.method} {seen.json()['n']}")) as provider:
        (exchange,) = asked(provider, 1)
    assert b"POST 1" in exchange.body


def test_many_requests_at_once_are_all_seen() -> None:
    with ScriptedProvider(lambda seen: says("hello")) as provider:
        exchanges = asked(provider, 50)
    assert {exchange.status for exchange in exchanges} == {200}
    assert len(provider.seen) == 50


def test_an_arrival_can_be_waited_for(provider: ScriptedProvider) -> None:
    provider.plays(says("hello"))
    asked(provider, 1)
    assert provider.arrived.acquire(timeout=5)


def test_calls_and_extra_keys_have_the_shape_of_the_wire() -> None:
    body = calls(("f", {"a": 1}), ("g", {})).body
    assert isinstance(body, bytes)
    message = json.loads(body)["choices"][0]["message"]
    assert [call["id"] for call in message["tool_calls"]] == ["call_1", "call_2"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"a": 1}
    extra = completion({"content": "x"}, finish_reason="length", system_fingerprint="fp").body
    assert isinstance(extra, bytes)
    assert json.loads(extra)["system_fingerprint"] == "fp"


def test_a_request_shows_its_json() -> None:
    assert Seen("POST", "/", {}, b'{"a": 1}').json() == {"a": 1}
