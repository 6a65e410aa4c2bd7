"""Every spelling of a key in every place of an answer, whole and in parts, at the level of the masker."""

import json
from collections.abc import Callable, Iterator

import pytest

from benchmarks.canary_answers import SPELLING_BY_NAME, escape_unicode
from benchmarks.canary_search import CanarySearch
from toolbench.engine.types import JsonObject
from toolbench.providers.masking.secrets import Masker, build_masker

KEY = "sk-canary/v1_09aZ+q7Xw~Rt5"
SEARCH = CanarySearch([KEY])


def _chunk(delta: JsonObject) -> JsonObject:
    return {"id": "c-1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _call(function: JsonObject, index: int = 0) -> JsonObject:
    return _chunk({"tool_calls": [{"index": index, "function": function}]})


def _block(delta: JsonObject) -> JsonObject:
    return {"type": "content_block_delta", "index": 1, "delta": delta}


def _item_event(kind: str, part: str, index: int = 0) -> JsonObject:
    return {"type": f"response.{kind}.delta", "item_id": f"i{index}", "output_index": index, "delta": part}


EVENTS: dict[str, Callable[[str], JsonObject]] = {
    "content": lambda part: _chunk({"content": part}),
    "reasoning": lambda part: _chunk({"reasoning_content": part}),
    "reasoning details": lambda part: _chunk({"reasoning_details": [{"index": 0, "text": part}]}),
    "refusal": lambda part: _chunk({"refusal": part}),
    "content parts": lambda part: _chunk({"content": [{"type": "text", "text": part}]}),
    "arguments": lambda part: _call({"arguments": part}),
    "arguments of the third call": lambda part: _call({"arguments": part}, 2),
    "tool name": lambda part: _call({"name": part}),
    "call id": lambda part: _chunk({"tool_calls": [{"index": 0, "id": part}]}),
    "unknown field": lambda part: _chunk({"x_trace": {"where": part}}),
    "second choice": lambda part: {"choices": [{"index": 1, "delta": {"content": part}}]},
    "completion": lambda part: {"choices": [{"index": 0, "text": part}]},
    "llama": lambda part: {"content": part, "stop": False},
    "messages text": lambda part: _block({"type": "text_delta", "text": part}),
    "messages thinking": lambda part: _block({"type": "thinking_delta", "thinking": part}),
    "messages arguments": lambda part: _block({"type": "input_json_delta", "partial_json": part}),
    "responses text": lambda part: _item_event("output_text", part),
    "responses summary": lambda part: _item_event("reasoning_summary_text", part),
    "responses arguments": lambda part: _item_event("function_call_arguments", part),
    "responses arguments of another item": lambda part: _item_event("function_call_arguments", part, 2),
    "error": lambda part: {"error": {"code": 502, "message": part}},
}
DOCUMENTS: dict[str, Callable[[str], JsonObject]] = {
    "content": lambda said: {"choices": [{"message": {"content": said}}]},
    "content in parts": lambda said: {"content": [{"type": "text", "text": part} for part in _cut(said, 3)]},
    "argument": lambda said: {"tool_calls": [{"id": "1", "function": {"arguments": json.dumps({"a": said})}}]},
    "input": lambda said: {"content": [{"type": "tool_use", "id": "1", "name": "n", "input": {"a": {"b": [said]}}}]},
    "object key": lambda said: {"input": {said: 1}},
    "id and name": lambda said: {"tool_calls": [{"id": said, "function": {"name": said}}]},
    "error": lambda said: {"error": {"message": said, "metadata": {"raw": json.dumps({"error": said})}}},
}


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _stream(events: list[JsonObject], *, escaped: bool = False) -> bytes:
    written = [_escaped(event) if escaped else json.dumps(event) for event in events]
    return "".join(f"data: {line}\n\n" for line in written).encode() + b"data: [DONE]\n\n"


def _escaped(value: object) -> str:
    """JSON with every letter of its values as an escape."""
    if isinstance(value, str):
        return f'"{escape_unicode(value)}"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_escaped(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_escaped, value)) + "]"
    return json.dumps(value)


def _shape(value: object) -> object:
    """What remains of JSON without its texts; the lengths of lists and the number of keys stay."""
    if isinstance(value, dict):
        return [_shape(item) for item in value.values()]
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return None if isinstance(value, str) else value


def _shapes(body: bytes) -> list[object]:
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line and b"[DONE]" not in line]
    return [_shape(json.loads(line)) for line in lines]


def _check(masker: Masker, body: bytes) -> None:
    assert SEARCH.has_canary(body)
    masked = masker.mask_body(body)
    assert not SEARCH.has_canary(masked), masked.decode()
    assert len(masked) == len(body)
    ends = [[place for place, byte in enumerate(item) if byte in b"\r\n"] for item in (body, masked)]
    assert ends[0] == ends[1]
    assert _shapes(masked) == _shapes(body)
    assert masker.mask_body(masked) is masked


def _splits(said: str) -> Iterator[list[str]]:
    """In two at every position, by threes and one by one."""
    yield from ([said[:at], said[at:]] for at in range(len(said) + 1))
    yield from (_cut(said, size) for size in (3, 1))


@pytest.mark.parametrize("place", ["content", "arguments"])
@pytest.mark.parametrize("spelling", SPELLING_BY_NAME)
def test_a_spelled_key_is_masked_wherever_it_is_split(spelling: str, place: str) -> None:
    masker, said = build_masker(KEY, ()), SPELLING_BY_NAME[spelling](KEY)
    for parts in _splits(said):
        _check(masker, _stream([EVENTS[place](part) for part in parts]))


@pytest.mark.parametrize("place", EVENTS)
def test_a_key_is_masked_in_every_field_of_a_stream(place: str) -> None:
    for parts in _splits(KEY):
        _check(build_masker(KEY, ()), _stream([EVENTS[place](part) for part in parts]))


@pytest.mark.parametrize("place", EVENTS)
@pytest.mark.parametrize("spelling", SPELLING_BY_NAME)
def test_a_spelled_key_is_masked_in_every_field(spelling: str, place: str) -> None:
    said = SPELLING_BY_NAME[spelling](KEY)
    for size in (1, 3, len(said)):
        _check(build_masker(KEY, ()), _stream([EVENTS[place](part) for part in _cut(said, size)]))


@pytest.mark.parametrize("place", EVENTS)
def test_a_key_in_a_stream_of_escapes_is_masked(place: str) -> None:
    for parts in _splits(KEY):
        _check(build_masker(KEY, ()), _stream([EVENTS[place](part) for part in parts], escaped=True))


@pytest.mark.parametrize("place", DOCUMENTS)
@pytest.mark.parametrize("spelling", SPELLING_BY_NAME)
def test_a_key_in_a_document_is_masked(spelling: str, place: str) -> None:
    _check(build_masker(KEY, ()), json.dumps(DOCUMENTS[place](SPELLING_BY_NAME[spelling](KEY))).encode())


@pytest.mark.parametrize(
    "places",
    [
        ("content", "reasoning"),
        ("arguments", "arguments of the third call"),
        ("responses arguments", "responses arguments of another item"),
    ],
)
def test_parts_of_two_texts_in_turn_are_told_apart(places: tuple[str, str]) -> None:
    events = [EVENTS[place](part) for part in _cut(KEY, 3) for place in places]
    _check(build_masker(KEY, ()), _stream(events))


def test_two_choices_that_come_in_turn_are_told_apart() -> None:
    events = [{"choices": [{"delta": {"content": part}, "index": at}]} for part in _cut(KEY, 2) for at in (0, 1)]
    _check(build_masker(KEY, ()), _stream(events))


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_end_of_line_is_known(end: bytes) -> None:
    body = _stream([EVENTS["content"](part) for part in _cut(KEY, 3)])
    _check(build_masker(KEY, ()), body.replace(b"\n", end))


def test_a_stream_that_breaks_off_inside_an_event_is_masked() -> None:
    masker, body = build_masker(KEY, ()), _stream([EVENTS["content"](part) for part in _cut(KEY, 3)])
    cut = body[: body.rindex(_cut(KEY, 3)[-1].encode()) + 2]
    assert b"content" in masker.mask_body(cut)
    assert not any(part.encode() in masker.mask_body(cut) for part in _cut(KEY, 3))


def test_an_event_that_is_no_json_does_not_hide_the_others() -> None:
    body = b'data: {"broken": "\n\n' + _stream([EVENTS["content"](part) for part in _cut(KEY, 3)])
    masked = build_masker(KEY, ()).mask_body(body)
    assert not any(part.encode() in masked for part in _cut(KEY, 3))


def test_a_key_of_digits_leaves_a_number_a_number() -> None:
    body = b'{"id": 4821507736, "text": "4821507736"}'
    assert json.loads(build_masker("4821507736", ()).mask_body(body)) == {"id": 1111111111, "text": "*" * 10}


@pytest.mark.parametrize(
    "key", ["nvapi-0123456789", "u0041bcdefgh", "bcdefgh12345", 'quoted"and\\back\\', "a%41b&amp;c\\u0041"]
)
def test_a_key_that_looks_like_a_part_of_an_escape_leaves_valid_json(key: str) -> None:
    masker = build_masker(key, ())
    for before in ("", "\\", "\n", "é", "\\\\", '"', "\x00"):
        body = json.dumps(
            {"text": before + key + before, "inner": json.dumps({"text": before + key + before})}
        ).encode()
        masked = json.loads(masker.mask_body(body))
        assert key not in masked["text"]
        assert key not in json.loads(masked["inner"])["text"]
