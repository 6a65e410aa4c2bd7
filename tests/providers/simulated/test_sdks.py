"""Tests that the SDKs of OpenAI and Anthropic read the simulated server as Toolbench does, with listed exceptions."""

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
Differences = dict[str, set[str]]


def describe_difference(mine: AnswerContent | str, theirs: AnswerContent | str) -> str:
    """Return how two readings differ; "" if they agree. Two refusals agree."""
    if isinstance(mine, str) or isinstance(theirs, str):
        if isinstance(mine, str) and isinstance(theirs, str):
            return ""
        return f"raises {theirs}" if isinstance(theirs, str) else "reads what we refuse"
    parts = [name for name in ("text", "calls", "finish", "tokens") if getattr(mine, name) != getattr(theirs, name)]
    return f"other {' and '.join(parts)}" if parts else ""


async def collect_differences(wire: str) -> Differences:
    """Return the differences by persona. Each reader has its own server, since some personas refuse a first try."""
    differences: Differences = {}
    async with (
        run_server() as mine,
        run_server() as theirs,
        HttpClient() as client,
        openai.AsyncOpenAI(base_url=f"{theirs.url}/v1", api_key=theirs.key, max_retries=0) as chat,
        anthropic.AsyncAnthropic(base_url=theirs.url, api_key=theirs.key, max_retries=0) as messages,
    ):
        for persona in list_personas(wire):
            for body in iter_requests(persona):
                for stream in (False, True):
                    sent = build_request(body, wire, stream)
                    read = await read_with_toolbench(mine, client, sent, wire)
                    client_read = {
                        "chat": partial(read_with_openai, chat),
                        "anthropic": partial(read_with_anthropic, messages),
                        "responses": partial(read_with_openai_responses, chat),
                    }[wire]
                    sdk_reading = await client_read(sent)
                    if difference := describe_difference(read, convert_finish(sdk_reading)):
                        differences.setdefault(persona.slug, set()).add(
                            ("streamed: " if stream else "whole: ") + difference
                        )
    return differences


@asynccontextmanager
async def run_server() -> AsyncIterator[SimulatedServer]:
    server = SimulatedServer(latency_factor=0)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def list_personas(wire: str) -> list[Persona]:
    return [
        persona for persona in load_personas().values() if wire in persona.wires and persona.slug not in NEVER_ANSWERS
    ]


def build_request(body: JsonObject, wire: str, stream: bool) -> JsonObject:
    chat_body = {**body, "stream": True, "stream_options": {"include_usage": True}} if stream else body
    sent, _ = get_wire_format(wire).encode(chat_body)
    if wire == "anthropic":
        assert parse_request(sent) == sent
    if wire == "responses":
        assert parse_responses_request(sent) == sent
    return sent


def convert_finish(reading: AnswerContent | str) -> AnswerContent | str:
    if isinstance(reading, str):
        return reading
    return AnswerContent(
        reading.text, reading.calls, FINISH_REASONS.get(reading.finish, reading.finish), reading.tokens
    )


def list_expected(sdk: str) -> Differences:
    return {slug: set(case["differs"]) for slug, case in DISAGREEMENTS[sdk].items()}


def test_openai_sdk_reads_every_chat_persona_except_listed_ones() -> None:
    assert asyncio.run(collect_differences("chat")) == list_expected("openai")


def test_anthropic_sdk_reads_every_persona_except_listed_ones() -> None:
    assert asyncio.run(collect_differences("anthropic")) == list_expected("anthropic")


def test_openai_sdk_reads_every_responses_persona_except_listed_ones() -> None:
    assert asyncio.run(collect_differences("responses")) == list_expected("openai responses")


def test_sdk_disagreements_each_have_a_reason() -> None:
    cases = [case for sdk in DISAGREEMENTS for case in DISAGREEMENTS[sdk].values()]
    assert all(case["why"].endswith(".") for case in cases)
    assert REFUSED_ANSWER not in {word for case in cases for word in case["differs"]}
