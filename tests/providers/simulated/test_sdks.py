"""The makers' own clients read our simulated server as we do; where one does not, the data says which and why."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import openai

from tests.engine.wire_formats.anthropic.sdk_types import parse_request
from tests.engine.wire_formats.responses.sdk_types import parse_request as parse_responses_request
from tests.providers.simulated.answer_readers import (
    REFUSED_ANSWER,
    AnswerContent,
    iter_requests,
    read_with_anthropic,
    read_with_openai,
    read_with_openai_responses,
    read_with_toolbench,
)
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.anthropic.answers import FINISH_REASONS
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.providers.http.client import HttpClient
from toolbench.providers.simulated.personas import Persona, load_personas
from toolbench.providers.simulated.server import SimulatedServer

DISAGREEMENTS: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "sdk_disagreements.json").read_text())
NEVER_ANSWERS = {"hangs"}
Found = dict[str, set[str]]


def compared(mine: AnswerContent | str, theirs: AnswerContent | str) -> str:
    """How two readings differ, in a word; "" where they agree. A refusal by both is one."""
    if isinstance(mine, str) or isinstance(theirs, str):
        if isinstance(mine, str) and isinstance(theirs, str):
            return ""
        return f"raises {theirs}" if isinstance(theirs, str) else "reads what we refuse"
    parts = [name for name in ("text", "calls", "finish", "tokens") if getattr(mine, name) != getattr(theirs, name)]
    return f"other {' and '.join(parts)}" if parts else ""


async def compare(wire: str) -> Found:
    """What differs, by persona. Each party has a server of its own: some personas refuse a first try."""
    found: Found = {}
    async with (
        served() as mine,
        served() as theirs,
        HttpClient() as client,
        openai.AsyncOpenAI(base_url=f"{theirs.url}/v1", api_key=theirs.key, max_retries=0) as chat,
        anthropic.AsyncAnthropic(base_url=theirs.url, api_key=theirs.key, max_retries=0) as messages,
    ):
        for persona in spoken_on(wire):
            for body in iter_requests(persona):
                for stream in (False, True):
                    sent = shaped(body, wire, stream)
                    read = await read_with_toolbench(mine, client, sent, wire)
                    client_read = {
                        "chat": partial(read_with_openai, chat),
                        "anthropic": partial(read_with_anthropic, messages),
                        "responses": partial(read_with_openai_responses, chat),
                    }[wire]
                    other = await client_read(sent)
                    if said := compared(read, in_chats_words(other)):
                        found.setdefault(persona.slug, set()).add(("streamed: " if stream else "whole: ") + said)
    return found


@asynccontextmanager
async def served() -> AsyncIterator[SimulatedServer]:
    server = SimulatedServer(latency_factor=0)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def spoken_on(wire: str) -> list[Persona]:
    return [
        persona for persona in load_personas().values() if wire in persona.wires and persona.slug not in NEVER_ANSWERS
    ]


def shaped(body: JsonObject, wire: str, stream: bool) -> JsonObject:
    asked = {**body, "stream": True, "stream_options": {"include_usage": True}} if stream else body
    sent, _ = get_wire_format(wire).encode(asked)
    if wire == "anthropic":
        assert parse_request(sent) == sent
    if wire == "responses":
        assert parse_responses_request(sent) == sent
    return sent


def in_chats_words(said: AnswerContent | str) -> AnswerContent | str:
    if isinstance(said, str):
        return said
    return AnswerContent(said.text, said.calls, FINISH_REASONS.get(said.finish, said.finish), said.tokens)


def expected(maker: str) -> Found:
    return {slug: set(case["differs"]) for slug, case in DISAGREEMENTS[maker].items()}


def test_openais_client_reads_every_persona_as_we_do_but_for_those_named() -> None:
    assert asyncio.run(compare("chat")) == expected("openai")


def test_anthropic_sdk_reads_every_persona_as_we_do_except_named_ones() -> None:
    assert asyncio.run(compare("anthropic")) == expected("anthropic")


def test_openai_sdk_reads_every_responses_persona_except_named_ones() -> None:
    assert asyncio.run(compare("responses")) == expected("openai responses")


def test_every_disagreement_says_why() -> None:
    cases = [case for maker in DISAGREEMENTS for case in DISAGREEMENTS[maker].values()]
    assert all(case["why"].endswith(".") for case in cases)
    assert REFUSED_ANSWER not in {word for case in cases for word in case["differs"]}
