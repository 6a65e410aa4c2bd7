"""Tokens, limits, fallbacks, streams, bad input and traces of the gateway, over real HTTP."""

import asyncio
import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any, cast

import aiohttp
import pytest

from tests.gateway.running import (
    CHAT,
    MESSAGES,
    POLL_SECONDS,
    POLL_TIMEOUT_SECONDS,
    QUESTION,
    RunningGateway,
    chat_body,
    gateway_with_fallback,
    in_database,
    make_alias,
    make_token,
    messages_body,
    post,
    read_traces,
    run,
    scripted_gateway,
    simulated_gateway,
    stream_reply,
)
from tests.lab.metrics.test_provider_budget import spend
from toolbench.gateway import server
from toolbench.gateway.exchange import ClientExchange
from toolbench.gateway.server import Gateway
from toolbench.lab.models import ApiToken, GatewaySpending, ModelAlias, Provider, Trial
from toolbench.log_lines import JsonLineFormatter
from toolbench.providers.scripted_server import (
    ConnectionEnd,
    ScriptedReply,
    ScriptedServer,
    json_reply,
    text_reply,
    tool_call_reply,
)

pytestmark = pytest.mark.django_db(transaction=True)
PRICE = {"input": 1.0, "output": 2.0}  # dollars per million tokens


async def wait_for_models_status(gateway: RunningGateway, status: int) -> None:
    async with asyncio.timeout(POLL_TIMEOUT_SECONDS):
        while (await gateway.session.get("/v1/models")).status != status:
            await asyncio.sleep(POLL_SECONDS)


async def wait_for_alias(gateway: RunningGateway, name: str) -> None:
    """Wait until the gateway lists an alias, so that it has read all aliases since that one was created."""
    async with asyncio.timeout(POLL_TIMEOUT_SECONDS):
        while name not in await (await gateway.session.get("/v1/models")).text():
            await asyncio.sleep(POLL_SECONDS)


async def wait_for_request(upstream: ScriptedServer) -> None:
    assert await asyncio.to_thread(upstream.arrived.acquire, timeout=POLL_TIMEOUT_SECONDS)


def test_gateway_returns_call_with_alias_header_and_explanation() -> None:
    async def body() -> None:
        async with scripted_gateway(tool_call_reply(("get_weather", {"city": "Berlin"}))) as (gateway, upstream):
            status, answer, headers = await post(gateway, chat_body(temperature=0.3), **{"x-toolbench-explain": "1"})
            assert status == 200
            (call,) = answer["choices"][0]["message"]["tool_calls"]
            assert json.loads(call["function"]["arguments"]) == {"city": "Berlin"}
            assert answer["toolbench"]["requests"] == 1
            assert headers["x-toolbench-alias"] == "weather"
            sent = upstream.seen[0].json()
            assert (sent["model"], sent["temperature"]) == ("m", 0.3)

    run(body)


def test_gateway_removes_message_name_and_reports_it_in_header() -> None:
    async def body() -> None:
        async with scripted_gateway(text_reply("Rain.")) as (gateway, upstream):
            answer = {"role": "assistant", "content": "Which city?", "name": "weather"}
            messages = [{**QUESTION[0], "name": "Ann"}, answer, {"role": "user", "content": "Berlin"}]
            status, _, headers = await post(gateway, chat_body(messages=messages))
            assert (status, headers["x-toolbench-changed"]) == (200, "message_name_removed")
            (request,) = upstream.seen
            assert [message for message in request.json()["messages"] if "name" in message] == []

    run(body)


def test_gateway_re_prompts_once_for_call_that_breaks_schema() -> None:
    async def body() -> None:
        replies = (
            tool_call_reply(("get_weather", {"town": "Berlin"})),
            tool_call_reply(("get_weather", {"city": "Berlin"})),
        )
        async with scripted_gateway(*replies) as (gateway, upstream):
            status, answer, _ = await post(gateway, chat_body())
            assert status == 200
            assert len(answer["choices"][0]["message"]["tool_calls"]) == 1
            assert len(upstream.seen) == 2

    run(body)


def test_gateway_without_repairs_names_tool_and_invalid_argument() -> None:
    async def body() -> None:
        async with scripted_gateway(tool_call_reply(("get_weather", {"city": 7})), repairs=False) as (gateway, _):
            status, answer, _ = await post(gateway, chat_body())
            assert (status, answer["error"]["code"]) == (502, "invalid_tool_call")
            assert "get_weather" in answer["error"]["message"]
            assert "$.city" in answer["error"]["message"]

    run(body)


def test_gateway_uses_fallback_alias_when_provider_fails() -> None:
    async def body() -> None:
        async with gateway_with_fallback(text_reply("From the second.")) as gateway:
            status, answer, headers = await post(gateway, chat_body())
            assert (status, answer["choices"][0]["message"]["content"]) == (200, "From the second.")
            assert headers["x-toolbench-alias"] == "second"
            (trace,) = await read_traces()
            assert (trace.alias, trace.served_by, trace.requests) == ("weather", "second", 2)

    run(body)


@pytest.mark.parametrize(
    ("status", "wait", "client_status", "client_wait"),
    [
        (429, {"retry-after": "90"}, 429, "90"),
        (429, {}, 429, "1"),
        (503, {"retry-after": "12.2"}, 502, "13"),
        (500, {"retry-after": "7"}, 502, None),
    ],
)
def test_gateway_forwards_wait_of_overloaded_provider(
    status: int, wait: dict[str, str], client_status: int, client_wait: str | None
) -> None:
    async def body() -> None:
        async with scripted_gateway(json_reply({"error": "busy"}, status=status, headers=wait)) as (gateway, _):
            found_status, _, headers = await post(gateway, chat_body())
            assert (found_status, headers.get("retry-after")) == (client_status, client_wait)

    run(body)


def test_gateway_refuses_token_after_revocation() -> None:
    async def body() -> None:
        async with scripted_gateway(*[text_reply("Hi")] * 3) as (gateway, _):
            assert (await post(gateway, chat_body()))[0] == 200
            await in_database(lambda: ApiToken.objects.update(revoked_at="2026-01-01T00:00:00Z"))
            await wait_for_models_status(gateway, 401)
            assert (await post(gateway, chat_body()))[0] == 401

    run(body)


@pytest.mark.parametrize(
    ("header", "status"), [("", 401), ("Bearer tb_unknown", 401), ("Basic x", 401), ("Bearer  ", 401)]
)
def test_gateway_refuses_request_without_valid_token(header: str, status: int) -> None:
    async def body() -> None:
        async with scripted_gateway() as (gateway, upstream), aiohttp.ClientSession(gateway.url) as session:
            async with session.post(CHAT, json=chat_body(), headers={"authorization": header}) as response:
                assert response.status == status
            async with session.get("/v1/models", headers={"authorization": header}) as response:
                assert response.status == status
            assert upstream.seen == []

    run(body)


def test_gateway_refuses_token_without_serve_scope() -> None:
    async def body() -> None:
        async with scripted_gateway() as (gateway, _):
            other = await in_database(make_token, "read")
            status, answer, _ = await post(gateway, chat_body(), authorization=f"Bearer {other}")
            assert (status, answer["error"]["code"]) == (403, "missing_scope")

    run(body)


def test_gateway_with_spent_budget_returns_429_and_sends_nothing() -> None:
    async def body() -> None:
        async with scripted_gateway(text_reply("Hi")) as (gateway, upstream):
            await in_database(lambda: spend(Provider.objects.get(), 2.0))
            await in_database(lambda: Provider.objects.update(budget_per_month=1.0))
            status, answer, _ = await post(gateway, chat_body())
            assert (status, answer["error"]["code"]) == (429, "budget_spent")
            assert "has spent" in answer["error"]["message"]
            assert upstream.seen == []

    run(body)


def test_gateway_trace_of_abandoned_stream_has_status_499() -> None:
    async def body() -> None:
        texts = [f"word {number} " * 500 for number in range(200)]
        async with scripted_gateway(stream_reply(*texts, pause=0.01), price=PRICE) as (gateway, _):
            async with gateway.session.post(CHAT, json=chat_body(stream=True, tools=None)) as response:
                await response.content.readany()
                response.close()
            (trace,) = await read_traces()
            assert (trace.code, trace.status, trace.requests) == ("client_left", 499, 1)
        spending = await in_database(GatewaySpending.objects.get)  # the gateway stores sums when it ends
        assert (spending.known, spending.unknown) == (0, 1)

    run(body)


def test_gateway_beyond_concurrency_limit_returns_429() -> None:
    async def body() -> None:
        may_answer = threading.Event()

        def wait_and_answer() -> Iterator[bytes]:
            assert may_answer.wait(POLL_TIMEOUT_SECONDS)
            yield cast(bytes, text_reply("Hi").body)

        blocked_reply = ScriptedReply(
            200, {"content-type": "application/json"}, wait_and_answer(), ending=ConnectionEnd.CLOSE
        )
        async with scripted_gateway(blocked_reply) as (gateway, upstream):
            await in_database(lambda: Provider.objects.update(concurrency=1))
            first = asyncio.create_task(post(gateway, chat_body()))
            await wait_for_request(upstream)
            status, _, headers = await post(gateway, chat_body())
            may_answer.set()
            assert (status, headers["retry-after"]) == (429, "1")
            assert (await first)[0] == 200

    run(body)


async def read_stream(gateway: RunningGateway, body: Any) -> list[Any]:
    async with gateway.session.post(CHAT, json=body) as response:
        assert response.status == 200
        lines = (await response.read()).split(b"\n\n")
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]


def join_text(events: list[Any]) -> str:
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])


def test_gateway_stream_keeps_text_order_and_hides_calls_in_text() -> None:
    call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Berlin"}}</tool_call>'

    async def body() -> None:
        replies = stream_reply("Good ", "day."), stream_reply("Look: ", call[:20], call[20:])
        async with scripted_gateway(*replies, strategy="production+text_calls_healed") as (gateway, _):
            plain = await read_stream(gateway, chat_body(stream=True, tools=None))
            assert join_text(plain) == "Good day."
            events = await read_stream(gateway, chat_body(stream=True))
            assert join_text(events).strip() == "Look:"
            deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
            (call_delta,) = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
            assert json.loads(call_delta["function"]["arguments"]) == {"city": "Berlin"}

    run(body)


@pytest.mark.parametrize(
    ("second", "is_error"),
    [
        (stream_reply("No call is needed."), True),
        (stream_reply("Again: ", arguments='{"city": "Berlin"}'), True),
        (stream_reply("Look: it rains."), False),
        (stream_reply(arguments='{"city": "Berlin"}'), False),
    ],
)
def test_gateway_stream_fails_only_if_re_prompt_changes_sent_text(second: ScriptedReply, is_error: bool) -> None:
    async def body() -> None:
        replies = stream_reply("Look: ", arguments='{"town": "Berlin"}'), second
        async with scripted_gateway(*replies) as (gateway, upstream):
            *events, last = await read_stream(gateway, chat_body(stream=True))
            assert len(upstream.seen) == 2
            assert ("error" in last) == is_error
            if is_error:
                assert last["error"]["code"] == "text_replaced"
                assert all(not event["choices"][0]["finish_reason"] for event in events)
                (trace,) = await read_traces()
                assert (trace.status, trace.code, trace.requests) == (502, "text_replaced", 2)

    run(body)


def test_gateway_cancels_upstream_request_when_client_disconnects() -> None:
    async def body() -> None:
        # The trace is stored when the request to the upstream has ended, which does not answer.
        reply = ScriptedReply(delay=10 * POLL_TIMEOUT_SECONDS)
        async with scripted_gateway(reply, price=PRICE) as (gateway, upstream):
            request = asyncio.create_task(post(gateway, chat_body()))
            await wait_for_request(upstream)
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)
            (trace,) = await read_traces()
            assert (trace.status, trace.code, trace.requests) == (499, "client_left", 1)
        spending = await in_database(GatewaySpending.objects.get)  # the gateway stores sums when it ends
        assert (spending.known, spending.unknown) == (0, 1)

    run(body)


def test_gateway_trace_has_masked_bodies_and_creates_no_trial() -> None:
    async def body() -> None:
        question = [{"role": "user", "content": "My key is sk-upstream-4711."}]
        async with scripted_gateway(text_reply("It is sk-upstream-4711.")) as (gateway, _):
            await post(gateway, chat_body(messages=question))
            (trace,) = await read_traces()
            bodies = (trace.client_request, trace.client_response, trace.upstream_request, trace.upstream_response)
            assert all(bodies)
            assert not any(b"sk-upstream-4711" in bytes(stored or b"") for stored in bodies)
            assert not await in_database(Trial.objects.exists)

    run(body)


def test_gateway_trace_follows_keep_bodies_and_keep_percent() -> None:
    async def body() -> None:
        async with scripted_gateway(*[text_reply("Hi")] * 2, keep_bodies=False) as (gateway, _):
            await post(gateway, chat_body())
            (trace,) = await read_traces()
            assert (trace.client_request, trace.upstream_response, trace.requests) == (None, None, 1)
            await in_database(lambda: ModelAlias.objects.update(keep_percent=0))
            await in_database(make_alias, await in_database(Provider.objects.get), "m", "newer")
            await wait_for_alias(gateway, "newer")
            await post(gateway, chat_body())
        assert len(await read_traces()) == 1  # the gateway stores queued traces when it ends

    run(body)


@pytest.mark.parametrize(
    ("fields", "is_kept"), [({}, True), ({"keep_bodies": False}, False), ({"keep_percent": 0}, False)]
)
def test_gateway_stream_collects_answer_only_for_kept_bodies(
    fields: dict[str, Any], is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanges: list[ClientExchange] = []
    monkeypatch.setattr(Gateway, "_put_trace", lambda gateway, exchange: exchanges.append(exchange))

    async def body() -> None:
        async with scripted_gateway(stream_reply("Good ", "day."), **fields) as (gateway, _):
            assert join_text(await read_stream(gateway, chat_body(stream=True, tools=None))) == "Good day."
        assert [b"day." in exchange.response for exchange in exchanges] == [is_kept]
        assert bool(exchanges[0].response) == is_kept

    run(body)


@pytest.mark.parametrize("stream", [False, True])
def test_gateway_log_lines_have_request_id(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*arguments: object) -> None:
        logging.getLogger("toolbench.tested").warning("Below")
        raise RuntimeError("broken")

    monkeypatch.setattr(server, "run_turn", fail)
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(JsonLineFormatter())
    monkeypatch.setattr(logging.getLogger("toolbench"), "handlers", [handler])

    async def body() -> None:
        async with scripted_gateway() as (gateway, _):
            status, _, headers = await post(gateway, chat_body(stream=stream))
            assert status == 500
            lines = [json.loads(line) for line in output.getvalue().splitlines()]
            assert [line["message"].split()[0] for line in lines] == ["Below", "Request"]
            assert {line["request"] for line in lines} == {headers["x-request-id"]}

    run(body)


def test_gateway_lists_aliases_as_models_and_serves_simulated_one() -> None:
    async def body() -> None:
        async with simulated_gateway("perfect") as gateway:
            async with gateway.session.get("/v1/models") as response:
                assert [model["id"] for model in (await response.json())["data"]] == ["weather"]
            assert (await post(gateway, messages_body(), MESSAGES))[1]["stop_reason"] == "tool_use"

    run(body)
