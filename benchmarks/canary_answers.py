"""Answers that repeat a key: its spellings, and each place of an answer in each wire format."""

import base64
import json
from collections.abc import Callable

from toolbench.engine.types import JsonObject

SpellSecret = Callable[[str], str]


def _percent_encode(text: str) -> str:
    return "".join(f"%{ord(character):02x}" for character in text)


def escape_unicode(text: str) -> str:
    """Return the text with every character as a JSON escape."""
    return "".join(f"\\u{ord(character):04X}" for character in text)


def _spell_every_second(text: str, spell: SpellSecret) -> str:
    return "".join(spell(character) if place % 2 else character for place, character in enumerate(text))


def _build_base64_spelling(before: str, *, url: bool = False) -> SpellSecret:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    return lambda text: encode(f"{before}{text}, and more".encode()).decode().rstrip("=")


SPELLING_BY_NAME: dict[str, SpellSecret] = {
    "plain": lambda text: text,
    "in a sentence": lambda text: f"Your key is\n{text}\\n, isn't it?",
    "json text": lambda text: json.dumps({"key": text}),
    "json in json": lambda text: json.dumps({"inner": json.dumps({"key": text}).replace("/", "\\/")}),
    "unicode escapes": escape_unicode,
    "some unicode escapes": lambda text: _spell_every_second(text, escape_unicode),
    "percent": _percent_encode,
    "percent in upper case": lambda text: _percent_encode(text).upper(),
    "some percent": lambda text: _spell_every_second(text, _percent_encode),
    "percent twice": lambda text: _percent_encode(text).replace("%", "%25"),
    "entities": lambda text: "".join(f"&#{ord(character)};" for character in text),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(character):X};" for character in text),
    **{f"base64 after {len(before)}": _build_base64_spelling(before) for before in ("", "x", "xy")},
    **{f"url base64 after {len(before)}": _build_base64_spelling(before, url=True) for before in ("", "x", "xy")},
    "base64 in percent": lambda text: _build_base64_spelling("x")(text).replace("+", "%2B").replace("/", "%2F"),
}


BuildEvents = Callable[[str], list[JsonObject]]


def split_by_threes(text: str) -> list[str]:
    """Return the text in parts of three characters."""
    return [text[at : at + 3] for at in range(0, len(text), 3)]


def _build_delta(delta: JsonObject, finish: str | None = None) -> JsonObject:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _build_call_events(**fields: str) -> list[JsonObject]:
    call = {"id": "call_1", "name": "get_weather", "arguments": "{}"} | fields
    first = {"index": 0, "id": call["id"], "type": "function", "function": {"name": "", "arguments": ""}}
    rest = [("name", part) for part in split_by_threes(call["name"])] + [
        ("arguments", part) for part in split_by_threes(call["arguments"])
    ]
    parts = [{"index": 0, "function": {field: part}} for field, part in rest]
    return [*(_build_delta({"tool_calls": [part]}) for part in (first, *parts)), _build_delta({}, "tool_calls")]


def _build_text_events(field: str) -> BuildEvents:
    return lambda spelled: [
        *(_build_delta({field: part}) for part in split_by_threes(spelled)),
        _build_delta({}, "stop"),
    ]


def _render_written_call(spelled: str) -> str:
    return json.dumps({"name": "get_weather", "arguments": {"city": spelled}})


def _build_block_events(block: JsonObject, kind: str, field: str) -> BuildEvents:
    def build_events(spelled: str) -> list[JsonObject]:
        text = json.dumps({"city": spelled}) if kind == "input_json_delta" else spelled
        deltas = [
            {"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: part}}
            for part in split_by_threes(text)
        ]
        return [
            {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {}}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            *deltas,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]

    return build_events


STREAM_BY_PLACE: dict[str, tuple[JsonObject, BuildEvents]] = {
    "chat content": ({}, _build_text_events("content")),
    "chat reasoning": ({}, _build_text_events("reasoning_content")),
    "chat arguments": ({}, lambda spelled: _build_call_events(arguments=json.dumps({"city": spelled}))),
    "chat broken arguments": ({}, lambda spelled: _build_call_events(arguments=f'{{"city": "{spelled}')),
    "chat tool name": ({}, lambda spelled: _build_call_events(name=spelled)),
    "chat id": ({}, lambda spelled: _build_call_events(id=spelled, arguments='{"city": "Oslo"}')),
    "chat error": ({}, lambda spelled: [_build_delta({"content": "So"}), {"error": {"code": 502, "message": spelled}}]),
    "text JSON": (
        {"method": "text_json"},
        lambda spelled: _build_text_events("content")(_render_written_call(spelled)),
    ),
    "constrained": (
        {"method": "constrained"},
        lambda spelled: _build_text_events("content")(_render_written_call(spelled)),
    ),
    "template": (
        {"method": "template"},
        lambda spelled: [
            {"choices": [{"index": 0, "text": part, "finish_reason": None}]}
            for part in split_by_threes(f"<tool_call>\n{_render_written_call(spelled)}\n</tool_call>")
        ],
    ),
    "llama": (
        {"method": "template", "prompt_endpoint": "llama"},
        lambda spelled: [{"content": part, "stop": False} for part in split_by_threes(spelled)],
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


def _build_call_message(spelled: str) -> JsonObject:
    function = {"name": f"n{spelled}", "arguments": json.dumps({"city": spelled, spelled: 1})}
    return _build_message({"content": None, "tool_calls": [{"id": spelled, "type": "function", "function": function}]})


def _build_block_message(spelled: str) -> JsonObject:
    blocks = [
        {"type": "text", "text": spelled},
        {"type": "tool_use", "id": spelled, "name": spelled, "input": {spelled: [spelled]}},
    ]
    return {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use", "usage": {}}


WHOLE_ANSWER_BY_PLACE: dict[str, tuple[JsonObject, int, Callable[[str], object]]] = {
    "chat content and reasoning": ({}, 200, lambda spelled: _build_message({"content": spelled, "reasoning": spelled})),
    "chat content in parts": (
        {},
        200,
        lambda spelled: _build_message(
            {"content": [{"type": "text", "text": part} for part in split_by_threes(spelled)]}
        ),
    ),
    "chat call": ({}, 200, _build_call_message),
    "chat names of the server": (
        {},
        200,
        lambda spelled: {**_build_message({"content": "x"}), "model": spelled, "provider": spelled},
    ),
    "text JSON": (
        {"method": "text_json"},
        200,
        lambda spelled: _build_message({"content": _render_written_call(spelled)}),
    ),
    "constrained": (
        {"method": "constrained"},
        200,
        lambda spelled: _build_message({"content": _render_written_call(spelled)}),
    ),
    "template": ({"method": "template"}, 200, lambda spelled: {"choices": [{"index": 0, "text": spelled}]}),
    "messages": ({"wire": "anthropic"}, 200, _build_block_message),
    "error object": (
        {},
        401,
        lambda spelled: {"error": {"message": f"Bad key {spelled}", "metadata": {"raw": spelled}}},
    ),
    "error text": ({}, 500, lambda spelled: f"Bad key {spelled}"),
    "messages error": ({"wire": "anthropic"}, 400, lambda spelled: {"type": "error", "error": {"message": spelled}}),
    "no answer": ({}, 200, lambda spelled: f"<p>{spelled}</p>"),
}
