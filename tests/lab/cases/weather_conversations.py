"""Scripted provider for conversations of the playground: one tool call, then texts with the number of messages."""

from collections.abc import Iterator

import pytest

from tests.lab.scripted_runs import make_scripted_model
from toolbench.lab.models import Model
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    text_reply,
    tool_call_reply,
)

TOOL = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


def answer(seen: ReceivedRequest) -> ScriptedReply:
    """Answer the first user message with a tool call, others with a text that gives the number of messages."""
    sent = seen.json()["messages"]
    if sent[-1]["role"] == "user" and sum(message["role"] == "user" for message in sent) == 1:
        return tool_call_reply(("get_weather", {"city": "Berlin"}))
    return text_reply(f"{len(sent)} messages.")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(answer) as scripted:
        yield scripted


@pytest.fixture
def model(server: ScriptedServer) -> Model:
    return make_scripted_model(server)
