"""Tests of the personas over Messages: refused requests, types of answers and events, and the published rates."""

import asyncio
import json
import math
from typing import Any

import pytest

from benchmarks.simulated_trials import Cell, judge_trials
from tests.engine.wire_formats.anthropic.sdk_types import parse_answer
from tests.providers.simulated.conftest import Serving
from tests.providers.simulated.test_true_rates import NEVER_ANSWERS, find_published_rate
from toolbench.evals.types import PUBLISHED_WORDING
from toolbench.providers.simulated.personas import load_personas

TRIALS = 5
USER = {"role": "user", "content": "Reply with exactly: Done."}
USE = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "{}"}
PERSONAS = [
    slug for slug, persona in load_personas().items() if "anthropic" in persona.wires and slug not in NEVER_ANSWERS
]


def build_assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def build_user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


async def post(serving: Serving, body: dict[str, Any], headers: dict[str, str] | None = None) -> tuple[int, str]:
    async with serving() as client, client.post("/v1/messages", json=body, headers=headers) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("slug", PERSONAS)
def test_messages_persona_passes_at_its_published_rate(slug: str) -> None:
    cell = Cell(
        (slug,),
        "happy_path",
        "production",
        stream=PERSONAS.index(slug) % 2 == 0,
        wire="anthropic",
        kind=PUBLISHED_WORDING,
    )
    rate = find_published_rate(cell)
    passed = sum(verdict.task_pass is True for verdict in judge_trials(cell, range(TRIALS)))
    assert abs(passed / TRIALS - rate) <= 4 * math.sqrt(rate * (1 - rate) / TRIALS)


@pytest.mark.parametrize("method", ["text_json", "constrained"])
def test_messages_request_by_another_method_passes(method: str) -> None:
    verdicts = judge_trials(
        Cell(("perfect",), "happy_path", wire="anthropic", method=method, kind=PUBLISHED_WORDING), range(3)
    )
    assert [verdict.outcome for verdict in verdicts] == ["pass"] * 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, "must use the user role"),
        ({"messages": [{"role": "system", "content": "Hi"}, USER]}, "must use the user role"),
        ({"messages": [build_user({"type": "text", "text": " "})]}, "must be non-empty"),
        ({"messages": [USER, {"role": "assistant", "content": "Hi "}]}, "trailing whitespace"),
        ({"messages": [USER, build_assistant(USE), USER]}, "without `tool_result` blocks"),
        (
            {"messages": [USER, build_assistant(USE), build_user({"type": "text", "text": "x"}, RESULT)]},
            "without `tool_result`",
        ),
        ({"messages": [USER, build_user(RESULT)]}, "without `tool_result` blocks"),
        (
            {"messages": [USER, build_assistant(USE), build_user(RESULT), build_assistant(USE), build_user(RESULT)]},
            "must be unique",
        ),
        (
            {"messages": [USER, build_assistant({**USE, "id": "a.b"}), build_user({**RESULT, "tool_use_id": "a.b"})]},
            "should match pattern",
        ),
        ({"messages": [{"role": "user"}]}, "string or a list of blocks"),
    ],
)
def test_messages_request_that_anthropic_refuses_gets_its_message(
    serving: Serving, change: dict[str, Any], sentence: str
) -> None:
    body = {"model": "messages/perfect", "max_tokens": 64, "messages": [USER]} | change
    status, text = asyncio.run(post(serving, body))
    error = json.loads(text)
    assert status == 400
    assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")
    assert sentence.lower() in error["error"]["message"].lower()


def test_messages_answers_and_events_have_anthropics_types(serving: Serving) -> None:
    body = {"model": "perfect", "max_tokens": 64, "messages": [USER]}
    whole = parse_answer(json.loads(asyncio.run(post(serving, body))[1]))
    assert whole.stop_reason == "end_turn"
    lines = asyncio.run(post(serving, body | {"stream": True}))[1].splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    payloads = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [payload["type"] for payload in payloads] == names
    assert (names[:2], names[-2:]) == (["message_start", "ping"], ["message_delta", "message_stop"])


def test_messages_request_with_a_wrong_key_is_refused(serving: Serving) -> None:
    body = {"model": "perfect", "max_tokens": 64, "messages": [USER]}
    for headers in ({"x-api-key": "sk-wrong"}, {"Authorization": "Bearer sk-wrong"}):
        status, text = asyncio.run(post(serving, body, headers))
        assert (status, json.loads(text)["error"]["type"]) == (401, "authentication_error")
