"""Answers that repeat a key: its spellings, and every place of an answer on every wire in which it may come."""

import base64
import json
from collections.abc import Callable

from toolbench.engine.types import JsonObject

SpellSecret = Callable[[str], str]


def _percent_encode(text: str) -> str:
    return "".join(f"%{ord(character):02x}" for character in text)


def escape_unicode(text: str) -> str:
    return "".join(f"\\u{ord(character):04X}" for character in text)


def _write_every_second(text: str, write: SpellSecret) -> str:
    return "".join(write(character) if place % 2 else character for place, character in enumerate(text))


def _build_base64_spelling(before: str, *, url: bool = False) -> SpellSecret:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    return lambda text: encode(f"{before}{text}, and more".encode()).decode().rstrip("=")


SPELLING_BY_NAME: dict[str, SpellSecret] = {
    "plain": lambda text: text,
    "in a sentence": lambda text: f"Your key is\n{text}\\n, isn't it?",
    "json text": lambda text: json.dumps({"key": text}),
    "json in json": lambda text: json.dumps({"inner": json.dumps({"key": text}).replace("/", "\\/")}),
    "unicode escapes": escape_unicode,
    "some unicode escapes": lambda text: _write_every_second(text, escape_unicode),
    "percent": _percent_encode,
    "percent in upper case": lambda text: _percent_encode(text).upper(),
    "some percent": lambda text: _write_every_second(text, _percent_encode),
    "percent twice": lambda text: _percent_encode(text).replace("%", "%25"),
    "entities": lambda text: "".join(f"&#{ord(character)};" for character in text),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(character):X};" for character in text),
    **{f"base64 after {len(before)}": _build_base64_spelling(before) for before in ("", "x", "xy")},
    **{f"url base64 after {len(before)}": _build_base64_spelling(before, url=True) for before in ("", "x", "xy")},
    "base64 in percent": lambda text: _build_base64_spelling("x")(text).replace("+", "%2B").replace("/", "%2F"),
}


BuildEvents = Callable[[str], list[JsonObject]]


def split_by_threes(text: str) -> list[str]:
    return [text[at : at + 3] for at in range(0, len(text), 3)]


def _build_delta(delta: JsonObject, finish: str | None = None) -> JsonObject:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _build_call_events(said: str, **of: str) -> list[JsonObject]:
    given = {"id": "call_1", "name": "get_weather", "arguments": "{}"} | of
    first = {"index": 0, "id": given["id"], "type": "function", "function": {"name": "", "arguments": ""}}
    rest = [("name", part) for part in split_by_threes(given["name"])] + [
        ("arguments", part) for part in split_by_threes(given["arguments"])
    ]
    parts = [{"index": 0, "function": {field: part}} for field, part in rest]
    return [*(_build_delta({"tool_calls": [part]}) for part in (first, *parts)), _build_delta({}, "tool_calls")]


def _build_text_events(field: str) -> BuildEvents:
    return lambda said: [*(_build_delta({field: part}) for part in split_by_threes(said)), _build_delta({}, "stop")]


def _render_written_call(said: str) -> str:
    return json.dumps({"name": "get_weather", "arguments": {"city": said}})


def _build_block_events(block: JsonObject, kind: str, field: str) -> BuildEvents:
    def events(said: str) -> list[JsonObject]:
        said = json.dumps({"city": said}) if kind == "input_json_delta" else said
        deltas = [
            {"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: part}}
            for part in split_by_threes(said)
        ]
        return [
            {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {}}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            *deltas,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]

    return events


STREAM_BY_PLACE: dict[str, tuple[JsonObject, BuildEvents]] = {
    "chat content": ({}, _build_text_events("content")),
    "chat reasoning": ({}, _build_text_events("reasoning_content")),
    "chat arguments": ({}, lambda said: _build_call_events(said, arguments=json.dumps({"city": said}))),
    "chat broken arguments": ({}, lambda said: _build_call_events(said, arguments=f'{{"city": "{said}')),
    "chat tool name": ({}, lambda said: _build_call_events(said, name=said)),
    "chat id": ({}, lambda said: _build_call_events(said, id=said, arguments='{"city": "Oslo"}')),
    "chat error": ({}, lambda said: [_build_delta({"content": "So"}), {"error": {"code": 502, "message": said}}]),
    "text JSON": ({"method": "text_json"}, lambda said: _build_text_events("content")(_render_written_call(said))),
    "constrained": ({"method": "constrained"}, lambda said: _build_text_events("content")(_render_written_call(said))),
    "template": (
        {"method": "template"},
        lambda said: [
            {"choices": [{"index": 0, "text": part, "finish_reason": None}]}
            for part in split_by_threes(f"<tool_call>\n{_render_written_call(said)}\n</tool_call>")
        ],
    ),
    "llama": (
        {"method": "template", "prompt_endpoint": "llama"},
        lambda said: [{"content": part, "stop": False} for part in split_by_threes(said)],
    ),
    "messages text": ({"wire": "anthropic"}, _build_block_events({"type": "text", "text": ""}, "text_delta", "text")),
    "messages thinking": (
        {"wire": "anthropic"},
        _build_block_events({"type": "thinking", "thinking": ""}, "thinking_delta", "thinking"),
    ),
    "messages arguments": (
        {"wire": "anthropic"},
        _build_block_events(
            {"type": "tool_use", "id": "t", "name": "get_weather", "input": {}}, "input_json_delta", "partial_json"
        ),
    ),
}


def _build_message(message: JsonObject) -> JsonObject:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


def _build_call_message(said: str) -> JsonObject:
    function = {"name": f"n{said}", "arguments": json.dumps({"city": said, said: 1})}
    return _build_message({"content": None, "tool_calls": [{"id": said, "type": "function", "function": function}]})


def _build_block_message(said: str) -> JsonObject:
    blocks = [{"type": "text", "text": said}, {"type": "tool_use", "id": said, "name": said, "input": {said: [said]}}]
    return {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use", "usage": {}}


WHOLE_ANSWER_BY_PLACE: dict[str, tuple[JsonObject, int, Callable[[str], object]]] = {
    "chat content and reasoning": ({}, 200, lambda said: _build_message({"content": said, "reasoning": said})),
    "chat content in parts": (
        {},
        200,
        lambda said: _build_message({"content": [{"type": "text", "text": part} for part in split_by_threes(said)]}),
    ),
    "chat call": ({}, 200, _build_call_message),
    "chat names of the server": (
        {},
        200,
        lambda said: {**_build_message({"content": "x"}), "model": said, "provider": said},
    ),
    "text JSON": ({"method": "text_json"}, 200, lambda said: _build_message({"content": _render_written_call(said)})),
    "constrained": (
        {"method": "constrained"},
        200,
        lambda said: _build_message({"content": _render_written_call(said)}),
    ),
    "template": ({"method": "template"}, 200, lambda said: {"choices": [{"index": 0, "text": said}]}),
    "messages": ({"wire": "anthropic"}, 200, _build_block_message),
    "error object": ({}, 401, lambda said: {"error": {"message": f"Bad key {said}", "metadata": {"raw": said}}}),
    "error text": ({}, 500, lambda said: f"Bad key {said}"),
    "messages error": ({"wire": "anthropic"}, 400, lambda said: {"type": "error", "error": {"message": said}}),
    "no answer": ({}, 200, lambda said: f"<p>{said}</p>"),
}
