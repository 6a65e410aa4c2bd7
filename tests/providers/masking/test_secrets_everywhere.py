"""Tests of masking a key in every spelling and in every field of an answer, whole and in chunks."""

import json
from collections.abc import Callable, Iterator

import pytest

from benchmarks.canary_answers import SPELLING_BY_NAME, escape_unicode
from benchmarks.canary_search import CanarySearch
from toolbench.engine.types import JsonObject
from toolbench.providers.masking.secrets import Masker, build_masker

KEY = "sk-canary/v1_09aZ+q7Xw~Rt5"
SEARCH = CanarySearch([KEY])


def _build_chunk(delta: JsonObject) -> JsonObject:
    return {"id": "c-1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _build_call_chunk(function: JsonObject, index: int = 0) -> JsonObject:
    return _build_chunk({"tool_calls": [{"index": index, "function": function}]})


def _build_block(delta: JsonObject) -> JsonObject:
    return {"type": "content_block_delta", "index": 1, "delta": delta}


def _build_item_event(kind: str, part: str, index: int = 0) -> JsonObject:
    return {"type": f"response.{kind}.delta", "item_id": f"i{index}", "output_index": index, "delta": part}


EVENTS: dict[str, Callable[[str], JsonObject]] = {
    "content": lambda part: _build_chunk({"content": part}),
    "reasoning": lambda part: _build_chunk({"reasoning_content": part}),
    "reasoning details": lambda part: _build_chunk({"reasoning_details": [{"index": 0, "text": part}]}),
    "refusal": lambda part: _build_chunk({"refusal": part}),
    "content parts": lambda part: _build_chunk({"content": [{"type": "text", "text": part}]}),
    "arguments": lambda part: _build_call_chunk({"arguments": part}),
    "arguments of the third call": lambda part: _build_call_chunk({"arguments": part}, 2),
    "tool name": lambda part: _build_call_chunk({"name": part}),
    "call id": lambda part: _build_chunk({"tool_calls": [{"index": 0, "id": part}]}),
    "unknown field": lambda part: _build_chunk({"x_trace": {"where": part}}),
    "second choice": lambda part: {"choices": [{"index": 1, "delta": {"content": part}}]},
    "completion": lambda part: {"choices": [{"index": 0, "text": part}]},
    "llama": lambda part: {"content": part, "stop": False},
    "messages text": lambda part: _build_block({"type": "text_delta", "text": part}),
    "messages thinking": lambda part: _build_block({"type": "thinking_delta", "thinking": part}),
    "messages arguments": lambda part: _build_block({"type": "input_json_delta", "partial_json": part}),
    "responses text": lambda part: _build_item_event("output_text", part),
    "responses summary": lambda part: _build_item_event("reasoning_summary_text", part),
    "responses arguments": lambda part: _build_item_event("function_call_arguments", part),
    "responses arguments of another item": lambda part: _build_item_event("function_call_arguments", part, 2),
    "error": lambda part: {"error": {"code": 502, "message": part}},
}
DOCUMENTS: dict[str, Callable[[str], JsonObject]] = {
    "content": lambda text: {"choices": [{"message": {"content": text}}]},
    "content in parts": lambda text: {"content": [{"type": "text", "text": part} for part in _split_by_size(text, 3)]},
    "argument": lambda text: {"tool_calls": [{"id": "1", "function": {"arguments": json.dumps({"a": text})}}]},
    "input": lambda text: {"content": [{"type": "tool_use", "id": "1", "name": "n", "input": {"a": {"b": [text]}}}]},
    "object key": lambda text: {"input": {text: 1}},
    "id and name": lambda text: {"tool_calls": [{"id": text, "function": {"name": text}}]},
    "error": lambda text: {"error": {"message": text, "metadata": {"raw": json.dumps({"error": text})}}},
}


def _split_by_size(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _build_stream(events: list[JsonObject], *, escaped: bool = False) -> bytes:
    written = [_render_escaped(event) if escaped else json.dumps(event) for event in events]
    return "".join(f"data: {line}\n\n" for line in written).encode() + b"data: [DONE]\n\n"


def _render_escaped(value: object) -> str:
    """Render JSON with every character of its texts as an escape."""
    if isinstance(value, str):
        return f'"{escape_unicode(value)}"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_render_escaped(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_render_escaped, value)) + "]"
    return json.dumps(value)


def _remove_texts(value: object) -> object:
    """Return JSON without its texts; the lengths of lists and the number of keys stay."""
    if isinstance(value, dict):
        return [_remove_texts(item) for item in value.values()]
    if isinstance(value, list):
        return [_remove_texts(item) for item in value]
    return None if isinstance(value, str) else value


def _list_shapes(body: bytes) -> list[object]:
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line and b"[DONE]" not in line]
    return [_remove_texts(json.loads(line)) for line in lines]


def _check_masked(masker: Masker, body: bytes) -> None:
    assert SEARCH.has_canary(body)
    masked = masker.mask_body(body)
    assert not SEARCH.has_canary(masked), masked.decode()
    assert len(masked) == len(body)
    ends = [[index for index, byte in enumerate(item) if byte in b"\r\n"] for item in (body, masked)]
    assert ends[0] == ends[1]
    assert _list_shapes(masked) == _list_shapes(body)
    assert masker.mask_body(masked) is masked


def _iter_splits(text: str) -> Iterator[list[str]]:
    """Yield the text in two parts for every position, in parts of three characters, and character by character."""
    yield from ([text[:start], text[start:]] for start in range(len(text) + 1))
    yield from (_split_by_size(text, size) for size in (3, 1))


@pytest.mark.parametrize("field", ["content", "arguments"])
@pytest.mark.parametrize("spelling", SPELLING_BY_NAME)
def test_mask_body_masks_a_spelled_key_at_every_split(spelling: str, field: str) -> None:
    masker, text = build_masker(KEY, ()), SPELLING_BY_NAME[spelling](KEY)
    for parts in _iter_splits(text):
        _check_masked(masker, _build_stream([EVENTS[field](part) for part in parts]))


@pytest.mark.parametrize("field", EVENTS)
def test_mask_body_masks_a_key_in_every_field_of_a_stream(field: str) -> None:
    for parts in _iter_splits(KEY):
        _check_masked(build_masker(KEY, ()), _build_stream([EVENTS[field](part) for part in parts]))


@pytest.mark.parametrize("field", EVENTS)
@pytest.mark.parametrize("spelling", SPELLING_BY_NAME)
def test_mask_body_masks_a_spelled_key_in_every_field(spelling: str, field: str) -> None:
    text = SPELLING_BY_NAME[spelling](KEY)
    for size in (1, 3, len(text)):
        _check_masked(
            build_masker(KEY, ()), _build_stream([EVENTS[field](part) for part in _split_by_size(text, size)])
        )


@pytest.mark.parametrize("field", EVENTS)
def test_mask_body_masks_a_key_in_a_stream_of_escapes(field: str) -> None:
    for parts in _iter_splits(KEY):
        _check_masked(build_masker(KEY, ()), _build_stream([EVENTS[field](part) for part in parts], escaped=True))


@pytest.mark.parametrize("field", DOCUMENTS)
@pytest.mark.parametrize("spelling", SPELLING_BY_NAME)
def test_mask_body_masks_a_key_in_a_document(spelling: str, field: str) -> None:
    _check_masked(build_masker(KEY, ()), json.dumps(DOCUMENTS[field](SPELLING_BY_NAME[spelling](KEY))).encode())


@pytest.mark.parametrize(
    "fields",
    [
        ("content", "reasoning"),
        ("arguments", "arguments of the third call"),
        ("responses arguments", "responses arguments of another item"),
    ],
)
def test_mask_body_masks_a_key_in_two_interleaved_texts(fields: tuple[str, str]) -> None:
    events = [EVENTS[field](part) for part in _split_by_size(KEY, 3) for field in fields]
    _check_masked(build_masker(KEY, ()), _build_stream(events))


def test_mask_body_masks_a_key_in_two_interleaved_choices() -> None:
    events = [
        {"choices": [{"delta": {"content": part}, "index": start}]}
        for part in _split_by_size(KEY, 2)
        for start in (0, 1)
    ]
    _check_masked(build_masker(KEY, ()), _build_stream(events))


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_mask_body_accepts_every_line_ending(end: bytes) -> None:
    body = _build_stream([EVENTS["content"](part) for part in _split_by_size(KEY, 3)])
    _check_masked(build_masker(KEY, ()), body.replace(b"\n", end))


def test_mask_body_masks_a_stream_that_breaks_off_in_an_event() -> None:
    masker, body = build_masker(KEY, ()), _build_stream([EVENTS["content"](part) for part in _split_by_size(KEY, 3)])
    truncated = body[: body.rindex(_split_by_size(KEY, 3)[-1].encode()) + 2]
    assert b"content" in masker.mask_body(truncated)
    assert not any(part.encode() in masker.mask_body(truncated) for part in _split_by_size(KEY, 3))


def test_mask_body_after_an_invalid_event_masks_the_others() -> None:
    body = b'data: {"broken": "\n\n' + _build_stream([EVENTS["content"](part) for part in _split_by_size(KEY, 3)])
    masked = build_masker(KEY, ()).mask_body(body)
    assert not any(part.encode() in masked for part in _split_by_size(KEY, 3))


@pytest.mark.parametrize(
    "template",
    [
        '{"a": {"content": "%s", "content": "%s"}}',
        'data: {"content": "%s"}\n\ndata: {"con\\u0074ent": "%s"}\n\n',
        'data: {"content": "%s"}\n\ndata: {"\\u0063\\u006f\\u006e\\u0074\\u0065\\u006e\\u0074": "%s"}\n\n',
    ],
)
def test_mask_body_joins_fields_with_repeated_or_escaped_keys(template: str) -> None:
    parts = KEY[:9], KEY[9:]
    masked = build_masker(KEY, ()).mask_body((template % parts).encode()).decode()
    assert masked == template % tuple("*" * len(part) for part in parts)


def test_mask_body_of_a_key_of_digits_keeps_a_number_a_number() -> None:
    body = b'{"id": 4821507736, "text": "4821507736"}'
    assert json.loads(build_masker("4821507736", ()).mask_body(body)) == {"id": 1111111111, "text": "*" * 10}


@pytest.mark.parametrize(
    "key", ["nvapi-0123456789", "u0041bcdefgh", "bcdefgh12345", 'quoted"and\\back\\', "a%41b&amp;c\\u0041"]
)
def test_mask_body_of_a_key_like_an_escape_leaves_valid_json(key: str) -> None:
    masker = build_masker(key, ())
    for before in ("", "\\", "\n", "é", "\\\\", '"', "\x00"):
        body = json.dumps(
            {"text": before + key + before, "inner": json.dumps({"text": before + key + before})}
        ).encode()
        masked = json.loads(masker.mask_body(body))
        assert key not in masked["text"]
        assert key not in json.loads(masked["inner"])["text"]
