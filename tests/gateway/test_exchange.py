"""Traces of gateway exchanges in every dialect, streamed or not, imported as drafts of test cases."""

import json
from typing import Any

import pytest

from tests.gateway.running import (
    CHAT,
    MESSAGES,
    chat_body,
    in_database,
    messages_body,
    read_traces,
    run,
    scripted_gateway,
    stream_reply,
)
from toolbench.lab.interchange.traffic.drafts import import_traffic
from toolbench.lab.models import TrafficDraft
from toolbench.lab.serving.traces import build_traffic_line
from toolbench.providers.scripted_server import ScriptedReply, tool_call_reply

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
