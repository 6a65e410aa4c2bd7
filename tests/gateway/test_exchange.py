"""Traces of gateway exchanges: their masked bodies, and drafts of test cases from them in every dialect."""

import json
from typing import Any

import pytest

from tests.gateway.running import (
    CHAT,
    MESSAGES,
    chat_body,
    gateway_with_fallback,
    in_database,
    messages_body,
    post,
    read_traces,
    run,
    scripted_gateway,
    stream_reply,
)
from toolbench.lab.interchange.traffic.drafts import import_traffic
from toolbench.lab.models import TrafficDraft
from toolbench.lab.serving.traces import BODY_COLUMNS, build_traffic_line
from toolbench.providers.scripted_server import ScriptedReply, text_reply, tool_call_reply

pytestmark = pytest.mark.django_db(transaction=True)
ARGUMENTS = '{"city": "Berlin"}'


@pytest.mark.parametrize(
    ("path", "body", "reply"),
    [
        (CHAT, chat_body(stream=True), stream_reply(arguments=ARGUMENTS)),
        (MESSAGES, messages_body(), tool_call_reply(("get_weather", {"city": "Berlin"}))),
        (MESSAGES, messages_body(stream=True), stream_reply(arguments=ARGUMENTS)),
        (CHAT, chat_body(), tool_call_reply(("get_weather", {"city": "Berlin"}))),
    ],
)
def test_build_traffic_line_is_importable_in_every_dialect(path: str, body: Any, reply: ScriptedReply) -> None:
    async def exchange() -> None:
        async with scripted_gateway(reply) as (gateway, _):
            async with gateway.session.post(path, json=body) as response:
                assert response.status == 200
                await response.read()
            (trace,) = await read_traces()
        result = await in_database(import_traffic, build_traffic_line(trace), "trace")
        assert (result.added, result.skipped) == (1, ())
        draft = await in_database(TrafficDraft.objects.get)
        assert "get_weather" in json.dumps(draft.definition)
        assert "Berlin" in json.dumps(draft.definition)

    run(exchange)


@pytest.mark.parametrize(
    ("fields", "status"),
    [({}, 200), ({"key_source": "environment", "key_env": "TOOLBENCH_TEST_UNSET_KEY"}, 503)],
    ids=["fallback_answers", "fallback_has_no_endpoint"],
)
def test_trace_masks_secrets_of_every_target(fields: dict[str, Any], status: int) -> None:
    async def exchange() -> None:
        question = [{"role": "user", "content": "My key is sk-upstream-4711."}]
        async with gateway_with_fallback(text_reply("It is sk-upstream-4711."), fields) as gateway:
            assert (await post(gateway, chat_body(messages=question)))[0] == status
            (trace,) = await read_traces()
        bodies = {name: bytes(getattr(trace, name) or b"") for name in BODY_COLUMNS}
        assert trace.served_by == "second"
        assert bodies["client_request"]
        assert bodies["upstream_request"]
        assert [name for name, stored in bodies.items() if b"sk-upstream-4711" in stored] == []

    run(exchange)


def test_trace_has_no_bodies_if_one_tried_target_keeps_none() -> None:
    async def exchange() -> None:
        async with gateway_with_fallback(text_reply("Hi"), keep_bodies=False) as gateway:
            assert (await post(gateway, chat_body()))[0] == 200
            (trace,) = await read_traces()
        assert trace.served_by == "second"
        assert [name for name in BODY_COLUMNS if getattr(trace, name)] == []

    run(exchange)
