"""Tests that usage stays within its bounds in every wire format, whatever replaces a number."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.engine.streams import render_chunk, render_stream, split_at
from tests.engine.wire_formats.anthropic.events import build_message, list_events
from tests.engine.wire_formats.test_stream_reader import decode_stream
from tests.extreme_numbers import EXTREME_NUMBERS, iter_number_paths, render_with_literal
from toolbench.engine.bounds import MAX_COST_USD, MAX_TOKENS
from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.types import Finding, JsonObject, Usage
from toolbench.engine.wire_formats.chat_answer import ChatAnswer, decode_chat_answer
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.engine.wire_formats.usage import IMPLAUSIBLE_CODE, add_usage, find_usage, read_usage

TOKENS = {
    "prompt_tokens": 10,
    "completion_tokens": 4,
    "total_tokens": 14,
    "prompt_tokens_details": {"cached_tokens": 6},
    "completion_tokens_details": {"reasoning_tokens": 3},
    "cost": 0.25,
}
HEAD = {"id": "x", "created": 1767225600, "model": "m", "usage": TOKENS}
CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
CHOICE = {"index": 0, "finish_reason": "stop", "logprobs": {"content": [{"token": "a", "logprob": -0.5}]}}
CHAT = {**HEAD, "choices": [{**CHOICE, "message": {"role": "assistant", "content": "Hi", "tool_calls": [CALL]}}]}
COMPLETION = {**HEAD, "choices": [{**CHOICE, "text": "Hi"}]}
LLAMA = {
    "index": 0,
    "content": "Hi",
    "stop": True,
    "stop_type": "eos",
    "tokens_evaluated": 10,
    "tokens_predicted": 2,
    "tokens_cached": 3,
    "timings": {"prompt_ms": 1.5, "predicted_ms": 2.5, "predicted_n": 2},
}
CLAUDE = build_message(
    {"type": "text", "text": "Hi"},
    usage={
        "input_tokens": 10,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 3,
        "output_tokens": 5,
        "output_tokens_details": {"thinking_tokens": 2},
    },
)
RESPONSE = {
    "id": "r",
    "created_at": 1767225600,
    "status": "completed",
    "model": "m",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}],
    "usage": {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 15,
    },
}


def _build_chat_stream(answer: JsonObject) -> list[JsonObject]:
    choice = answer["choices"][0]
    part = {name: value for name, value in choice.items() if name != "message"}
    delta = {**part, **({"delta": choice["message"]} if "message" in choice else {})}
    return [{**answer, "usage": None, "choices": [delta]}, {**answer, "choices": []}]


# Answers in each wire format, as one body or as events.
EXAMPLES: dict[str, tuple[str, Sequence[JsonObject]]] = {
    "chat": ("chat", [CHAT]),
    "chat, streamed": ("chat", _build_chat_stream(CHAT)),
    "completions": ("completions", [COMPLETION]),
    "completions, streamed": ("completions", _build_chat_stream(COMPLETION)),
    "llama": ("llama", [LLAMA]),
    "llama, streamed": ("llama", [{"content": "H", "stop": False}, LLAMA]),
    "messages": ("anthropic", [CLAUDE]),
    "messages, streamed": ("anthropic", list_events(CLAUDE)),
    "responses": ("responses", [RESPONSE]),
    "responses, streamed": ("responses", [{"type": "response.completed", "response": RESPONSE}]),
}


def decode_example(payloads: Sequence[str], example: str) -> ChatAnswer:
    """Read the payloads as an answer. Raises MalformedAnswerError."""
    wire, streamed = EXAMPLES[example][0], "streamed" in example
    received: list[Any] = []

    def keep(answer: ChatAnswer) -> Any:
        received.append(answer)

    decoder = get_wire_format(wire).build_decoder(keep, lambda delta: None, is_streamed=streamed)
    body = "".join(f"data: {payload}\n\n" for payload in payloads) if streamed else payloads[0]
    decoder.feed(body.encode())
    decoder.close()
    answer: ChatAnswer = received[0]
    return answer


def list_implausible_paths(findings: Sequence[Finding]) -> list[str]:
    return [finding.path for finding in findings if finding.code == IMPLAUSIBLE_CODE]


def is_within_bounds(usage: Usage | None) -> bool:
    if usage is None:
        return True
    tokens = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens)
    are_tokens_valid = all(count is None or (type(count) is int and 0 <= count <= MAX_TOKENS) for count in tokens)
    return are_tokens_valid and (usage.cost is None or (type(usage.cost) is float and 0 <= usage.cost <= MAX_COST_USD))


@pytest.mark.parametrize("example", EXAMPLES)
def test_answer_with_an_extreme_number_stays_within_bounds(example: str) -> None:
    payloads = EXAMPLES[example][1]
    texts = [json.dumps(payload) for payload in payloads]
    assert list_implausible_paths(decode_example(texts, example).findings) == []
    leaves = [(index, path) for index, payload in enumerate(payloads) for path in iter_number_paths(payload)]
    assert len(leaves) >= 5
    for index, path in leaves:
        for literal in EXTREME_NUMBERS:
            poisoned = [*texts[:index], render_with_literal(payloads[index], path, literal), *texts[index + 1 :]]
            try:
                answer = decode_example(poisoned, example)
            except MalformedAnswerError:
                assert not {"usage", "timings", "tokens_evaluated", "tokens_predicted"} & set(path), (path, literal)
                continue
            assert is_within_bounds(answer.usage), (path, literal)
            json.dumps(answer.message, allow_nan=False)  # the next request contains it


@pytest.mark.parametrize(
    "literal", ["-1", "0.5", "1000000001", "1e308", "1e400", "NaN", "9" * 5000, "true", '"7"', "[]"]
)
@pytest.mark.parametrize(
    ("example", "index", "path"),
    [
        ("chat", 0, "$.usage.prompt_tokens"),
        ("chat", 0, "$.usage.completion_tokens_details.reasoning_tokens"),
        ("chat, streamed", 1, "$.usage.completion_tokens"),
        ("completions", 0, "$.usage.prompt_tokens_details.cached_tokens"),
        ("completions, streamed", 1, "$.usage.prompt_tokens"),
        ("llama", 0, "$.tokens_evaluated"),
        ("llama, streamed", 1, "$.tokens_predicted"),
        ("messages", 0, "$.usage.cache_creation_input_tokens"),
        ("messages, streamed", 0, "$.usage.cache_read_input_tokens"),
    ],
)
def test_implausible_tokens_are_a_finding_at_their_path(example: str, index: int, path: str, literal: str) -> None:
    payloads = EXAMPLES[example][1]
    keys = (*(("message",) if "type" in payloads[index] and "message" in payloads[index] else ()), *path[2:].split("."))
    texts = [json.dumps(payload) for payload in payloads]
    texts[index] = render_with_literal(payloads[index], keys, literal)
    answer = decode_example(texts, example)
    assert list_implausible_paths(answer.findings) == [path]
    assert all(len(finding.message) < 300 for finding in answer.findings)


@pytest.mark.parametrize("cost", [-0.5, 1_000_001, 1e308, True, "0.1", [], {}])
def test_read_usage_implausible_cost_is_a_finding(cost: Any) -> None:
    usage, findings = read_usage({**TOKENS, "cost": cost})
    assert (usage, list_implausible_paths(findings)) == (Usage(10, 4, 6, 3, None), ["$.usage.cost"])


def test_implausible_finding_names_value_and_valid_range() -> None:
    _, findings = read_usage({"prompt_tokens": -5})
    assert findings[0].message == (
        "The answer's usage is implausible: $.usage.prompt_tokens is -5, but tokens are whole numbers from 0 to "
        "1,000,000,000. It counts as unknown."
    )


@pytest.mark.parametrize(
    ("example", "index", "keys"),
    [
        ("chat", 0, ("usage",)),
        ("chat", 0, ("usage", "prompt_tokens")),
        ("chat, streamed", 1, ("usage", "cost")),
        ("llama", 0, ("tokens_evaluated",)),
        ("messages", 0, ("usage",)),
        ("messages, streamed", 0, ("message", "usage", "input_tokens")),
        ("responses", 0, ("usage", "input_tokens")),
        ("responses, streamed", 0, ("response", "usage", "input_tokens")),
    ],
)
@pytest.mark.parametrize(
    ("literal", "description"),
    [
        ("NaN", "not a number"),
        ("-Infinity", "a number beyond all bounds"),
        ("1e400", "a number beyond all bounds"),
        ("9" * 5000, "a number beyond all bounds"),
        ('"NaN"', "a text"),
    ],
)
def test_finding_describes_number_that_json_cannot_represent(
    example: str, index: int, keys: tuple[str, ...], literal: str, description: str
) -> None:
    payloads = EXAMPLES[example][1]
    texts = [json.dumps(payload) for payload in payloads]
    texts[index] = render_with_literal(payloads[index], keys, literal)
    answer = decode_example(texts, example)
    assert f" is {description}, but " in "".join(finding.message for finding in answer.findings)


def test_read_usage_keeps_figures_at_their_bounds() -> None:
    bounds = {"prompt_tokens": MAX_TOKENS, "completion_tokens": 0, "cost": MAX_COST_USD}
    assert read_usage(bounds) == (Usage(MAX_TOKENS, 0, cost=float(MAX_COST_USD)), ())
    assert read_usage({"prompt_tokens": 12.0}) == (Usage(12), ())


def test_read_usage_missing_and_null_figures_are_unknown() -> None:
    assert read_usage(None) == (None, ())
    assert read_usage({"prompt_tokens": None, "prompt_tokens_details": None, "cost": None}) == (Usage(), ())


@pytest.mark.parametrize("reported_usage", [[], "7", 7])
def test_read_usage_that_is_no_object_is_implausible(reported_usage: Any) -> None:
    usage, findings = read_usage(reported_usage)
    assert (usage, list_implausible_paths(findings)) == (None, ["$.usage"])


def test_read_usage_reads_input_and_output_tokens() -> None:
    assert read_usage({"input_tokens": 1, "output_tokens": 2}) == (Usage(1, 2), ())


def test_messages_prompt_with_an_implausible_part_is_unknown() -> None:
    text = render_with_literal(CLAUDE, ("usage", "cache_read_input_tokens"), "1e30")
    answer = decode_example([text], "messages")
    assert (answer.usage, list_implausible_paths(answer.findings)) == (
        Usage(None, 5, None, 2),
        ["$.usage.cache_read_input_tokens"],
    )


def test_number_that_json_cannot_represent_elsewhere_is_not_json() -> None:
    for path in (("choices", 0, "message", "tool_calls", 0, "function", "arguments"), ("choices", 0, "index")):
        with pytest.raises(MalformedAnswerError) as caught:
            decode_example([render_with_literal(CHAT, path, "NaN")], "chat")
        assert caught.value.code == "not_json"


def test_add_usage_distinguishes_unknown_from_zero() -> None:
    total = add_usage(add_usage(Usage(), Usage(input_tokens=3, cost=0.5)), Usage(input_tokens=0, output_tokens=0))
    assert total == Usage(input_tokens=3, output_tokens=0, cost=0.5)
    assert add_usage(total, None) is total


GROQ = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


def test_groq_usage_is_read_in_stream_and_complete_answer() -> None:
    groq = {"id": "req_1", "usage": GROQ}
    body = render_stream(
        render_chunk({"content": "Hi"}), render_chunk({}, finish="stop", x_groq=groq), finish="", usage=False
    )
    choice = {"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}

    for turn in (decode_stream([body]), *(decode_stream(split_at(body, [index])) for index in range(0, len(body), 7))):
        assert (turn.usage, turn.findings) == (Usage(input_tokens=10, output_tokens=2), ())
    assert decode_chat_answer(json.dumps({"choices": [choice], "x_groq": groq}).encode()).usage == Usage(
        input_tokens=10, output_tokens=2
    )


def test_find_usage_prefers_usage_of_the_answer_over_groq() -> None:
    root = {"usage": GROQ, "x_groq": {"usage": {"prompt_tokens": 1}}}

    assert find_usage(root) == GROQ
    assert find_usage({"x_groq": "req_1"}) is None
