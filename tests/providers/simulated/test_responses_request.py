"""Tests of the personas over Responses: refused requests, types of answers and events, and the published rates."""

import asyncio
import json
import math
from typing import Any

import pytest

from benchmarks.simulated_trials import Cell, judge_trials
from tests.engine.wire_formats.responses.sdk_types import parse_answer
from tests.providers.simulated.conftest import Serving
from tests.providers.simulated.test_true_rates import NEVER_ANSWERS, find_published_rate
from toolbench.evals.types import PUBLISHED_WORDING
from toolbench.providers.simulated.personas import load_personas

TRIALS = 5
WITHOUT_ANSWER = {"hangs", "drops-connection"}
READS_CHAT_ONLY = "functions-only"
STATUS_BY_FAULT = {
    "context_overflow": 400, "key_refused": 401, "model_format_error": 500, "no_tool_route": 404, "out_of_money": 402,
    "quoted_in_400": 400, "rate_limited": 429, "unavailable": 503,
}  # fmt: skip
USER = {"role": "user", "content": "Reply with exactly: Done."}
CALL = {"type": "function_call", "call_id": "call_1", "name": "get", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "{}"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
PERSONAS = [
    slug for slug, persona in load_personas().items() if "responses" in persona.wires and slug not in NEVER_ANSWERS
]


async def post(serving: Serving, body: dict[str, Any], headers: dict[str, str] | None = None) -> tuple[int, str]:
    async with serving() as client, client.post("/v1/responses", json=body, headers=headers) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("slug", PERSONAS)
def test_responses_persona_passes_at_its_published_rate(slug: str) -> None:
    stream = PERSONAS.index(slug) % 2 == 0
    cell = Cell((slug,), "happy_path", "production", stream=stream, wire="responses", kind=PUBLISHED_WORDING)
    rate = find_published_rate(cell)
    passed = sum(verdict.task_pass is True for verdict in judge_trials(cell, range(TRIALS)))
    assert abs(passed / TRIALS - rate) <= 4 * math.sqrt(rate * (1 - rate) / TRIALS)


@pytest.mark.parametrize("method", ["text_json", "constrained"])
def test_responses_request_by_another_method_passes(method: str) -> None:
    cell = Cell(("perfect",), "happy_path", wire="responses", method=method, kind=PUBLISHED_WORDING)
    assert [verdict.outcome for verdict in judge_trials(cell, range(3))] == ["pass"] * 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"input": []}, "required parameter: 'input'"),
        ({"messages": [USER]}, "unknown parameter: 'messages'"),
        ({"seed": 1}, "unknown parameter: 'seed'"),
        ({"max_output_tokens": 8}, "below minimum value"),
        ({"input": [{"role": "tool", "content": "x"}]}, "'role'"),
        ({"input": [USER, CALL]}, "no tool output found"),
        ({"input": [USER, RESULT]}, "no tool call found"),
        ({"input": [USER, REASONING, USER]}, "without its following item"),
        ({"input": [USER, CALL, RESULT, REASONING]}, "without its following item"),
        ({"tools": [{"type": "function", "function": {"name": "get"}}]}, "tools[0].name"),
    ],
)
def test_responses_request_that_openai_refuses_gets_its_message(
    serving: Serving, change: dict[str, Any], sentence: str
) -> None:
    status, text = asyncio.run(post(serving, {"model": "responses/perfect", "input": [USER]} | change))
    error = json.loads(text)["error"]
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert sentence in error["message"].lower()


@pytest.mark.parametrize("slug", [slug for slug in load_personas() if slug not in WITHOUT_ANSWER])
@pytest.mark.parametrize("stream", [False, True])
def test_responses_request_gets_the_status_of_the_personas_fault(serving: Serving, slug: str, stream: bool) -> None:
    tool = {"type": "function", "name": "state_get", "parameters": {"type": "object"}, "strict": False}
    body = {"model": slug, "input": "Call state_get, then reply Done.", "tools": [tool], "stream": stream}

    async def send() -> tuple[int, str, str]:
        async with serving() as client, client.post("/v1/responses", json=body) as answer:
            return answer.status, answer.headers["x-simulated"], await answer.text()

    status, label, text = asyncio.run(send())
    model, _, fault = label.partition("; drift=")
    assert model == slug
    assert status == (400 if slug == READS_CHAT_ONLY else STATUS_BY_FAULT.get(fault, 200))
    assert text


def test_responses_answers_and_events_have_openais_types(serving: Serving) -> None:
    body = {"model": "perfect", "input": [USER], "instructions": "Be brief."}
    whole = parse_answer(json.loads(asyncio.run(post(serving, body))[1]))
    assert (whole.status, whole.output_text) == ("completed", "Done.")
    lines = asyncio.run(post(serving, body | {"stream": True}))[1].splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    payloads = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [payload["type"] for payload in payloads] == names
    assert [payload["sequence_number"] for payload in payloads] == [*range(len(names))]
    assert (names[:2], names[-1]) == (["response.created", "response.in_progress"], "response.completed")
    assert parse_answer(payloads[-1]["response"]).output_text == "Done."


def test_responses_request_with_a_wrong_key_is_refused(serving: Serving) -> None:
    status, text = asyncio.run(post(serving, {"input": "x"}, {"Authorization": "Bearer sk-wrong"}))
    assert (status, json.loads(text)["error"]["type"]) == (401, "authentication_error")
