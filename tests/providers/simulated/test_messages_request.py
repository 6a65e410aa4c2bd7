"""The personas in Anthropic's shape: its rules are kept, its events well formed, and the published rates hold."""

import asyncio
import json
import math
from typing import Any

import pytest

from benchmarks.simulated_trials import Cell, judge_trials
from tests.engine.wire_formats.anthropic.sdk_types import parse_answer
from tests.providers.simulated.conftest import Serving
from tests.providers.simulated.test_true_rates import NEEDS_PATIENCE, published
from toolbench.evals.types import PUBLISHED_WORDING
from toolbench.providers.simulated.personas import load_personas

TRIALS = 5
USER = {"role": "user", "content": "Reply with exactly: Done."}
USE = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "{}"}
SPOKEN = [
    slug for slug, persona in load_personas().items() if "anthropic" in persona.wires and slug not in NEEDS_PATIENCE
]


def calling(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def told(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


async def posted(serving: Serving, body: dict[str, Any], headers: dict[str, str] | None = None) -> tuple[int, str]:
    async with serving() as client, client.post("/v1/messages", json=body, headers=headers) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("slug", SPOKEN)
def test_the_published_rates_hold_on_this_wire(slug: str) -> None:
    cell = Cell(
        (slug,),
        "happy_path",
        "production",
        stream=SPOKEN.index(slug) % 2 == 0,
        wire="anthropic",
        kind=PUBLISHED_WORDING,
    )
    rate = published(cell)
    passed = sum(verdict.task_pass is True for verdict in judge_trials(cell, range(TRIALS)))
    assert abs(passed / TRIALS - rate) <= 4 * math.sqrt(rate * (1 - rate) / TRIALS)


@pytest.mark.parametrize("method", ["text_json", "constrained"])
def test_other_ways_of_asking_work_on_this_wire(method: str) -> None:
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
        ({"messages": [told({"type": "text", "text": " "})]}, "must be non-empty"),
        ({"messages": [USER, {"role": "assistant", "content": "Hi "}]}, "trailing whitespace"),
        ({"messages": [USER, calling(USE), USER]}, "without `tool_result` blocks"),
        ({"messages": [USER, calling(USE), told({"type": "text", "text": "x"}, RESULT)]}, "without `tool_result`"),
        ({"messages": [USER, told(RESULT)]}, "without `tool_result` blocks"),
        ({"messages": [USER, calling(USE), told(RESULT), calling(USE), told(RESULT)]}, "must be unique"),
        (
            {"messages": [USER, calling({**USE, "id": "a.b"}), told({**RESULT, "tool_use_id": "a.b"})]},
            "should match pattern",
        ),
        ({"messages": [{"role": "user"}]}, "string or a list of blocks"),
    ],
)
def test_what_anthropic_would_refuse_is_refused_in_its_words(
    serving: Serving, change: dict[str, Any], sentence: str
) -> None:
    body = {"model": "messages/perfect", "max_tokens": 64, "messages": [USER]} | change
    status, answered = asyncio.run(posted(serving, body))
    refused = json.loads(answered)
    assert status == 400
    assert (refused["type"], refused["error"]["type"]) == ("error", "invalid_request_error")
    assert sentence.lower() in refused["error"]["message"].lower()


def test_answers_and_events_are_of_anthropics_types(serving: Serving) -> None:
    body = {"model": "perfect", "max_tokens": 64, "messages": [USER]}
    whole = parse_answer(json.loads(asyncio.run(posted(serving, body))[1]))
    assert whole.stop_reason == "end_turn"
    lines = asyncio.run(posted(serving, body | {"stream": True}))[1].splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    payloads = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [payload["type"] for payload in payloads] == names
    assert (names[:2], names[-2:]) == (["message_start", "ping"], ["message_delta", "message_stop"])


def test_another_key_is_refused_in_either_header(serving: Serving) -> None:
    body = {"model": "perfect", "max_tokens": 64, "messages": [USER]}
    for headers in ({"x-api-key": "sk-wrong"}, {"Authorization": "Bearer sk-wrong"}):
        status, answered = asyncio.run(posted(serving, body, headers))
        assert (status, json.loads(answered)["error"]["type"]) == (401, "authentication_error")
