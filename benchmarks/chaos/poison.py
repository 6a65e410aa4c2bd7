"""Poisoned answers, as a broken or hostile provider may send them, by name."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply, chat_reply, error_reply

_JSON_HEADERS = {"content-type": "application/json"}
_EVENT_HEADERS = {"content-type": "text/event-stream"}
_CALL = {"id": "call_1", "type": "function", "function": {"name": "state_get", "arguments": "{}"}}


def _build_body(text: str, **more: Any) -> ScriptedReply:
    return ScriptedReply(200, _JSON_HEADERS, text.encode("utf-8", "surrogatepass"), **more)


def _build_usage(number: str) -> ScriptedReply:
    """Build a correct answer whose usage has `number`, a JSON text, in each figure."""
    details = {"cached_tokens": "n", "reasoning_tokens": "n"}
    usage: JsonObject = {"prompt_tokens": "n", "completion_tokens": "n", "total_tokens": "n", "cost": "n"}
    usage |= {"prompt_tokens_details": details, "completion_tokens_details": details}
    choice = {"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}
    answer = {"id": "poisoned", "model": "poisoned", "choices": [choice]}
    return _build_body(json.dumps(answer)[:-1] + f', "usage": {json.dumps(usage)}}}'.replace('"n"', number))


def _build_call(name: str, arguments: str) -> ScriptedReply:
    call: JsonObject = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return chat_reply({"content": None, "tool_calls": [call]}, finish_reason="tool_calls")


def _build_events(*texts: str, ending: ConnectionEnd = ConnectionEnd.CLOSE) -> ScriptedReply:
    return ScriptedReply(200, _EVENT_HEADERS, "".join(f"data: {text}\n\n" for text in texts).encode(), ending=ending)


def _render_delta(**delta: Any) -> str:
    return json.dumps({"id": "p", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def _build_broken(ending: ConnectionEnd) -> ScriptedReply:
    """Build an answer with the first 60 bytes of a body whose length header names more."""
    body = chat_reply({"content": "Done."}).body
    assert isinstance(body, bytes)
    return ScriptedReply(200, _JSON_HEADERS, body[:60], declared=len(body), ending=ending)


def _build_large(megabytes: int) -> ScriptedReply:
    return chat_reply({"content": "x" * (megabytes * 1_000_000)})


POISON_BY_NAME: Mapping[str, Callable[[], ScriptedReply]] = {
    "usage 10^30": lambda: _build_usage("1" + "0" * 30),
    "usage 2^63": lambda: _build_usage(str(2**63)),
    "usage 2^31": lambda: _build_usage(str(2**31)),
    "usage 1e308": lambda: _build_usage("1e308"),
    "usage NaN": lambda: _build_usage("NaN"),
    "usage Infinity": lambda: _build_usage("Infinity"),
    "usage -1": lambda: _build_usage("-1"),
    "usage text": lambda: _build_usage('"many"'),
    "usage list": lambda: _build_usage("[1, 2]"),
    "NUL in every text": lambda: chat_reply({"content": "a\0b", "tool_calls": [_CALL]}, model="m\0", id="\0"),
    "lone surrogates": lambda: chat_reply({"content": "\ud800", "reasoning_content": "\udfff"}, model="\ud83d"),
    "NUL in a call": lambda: _build_call("state\0get", json.dumps({"request_id": "\0\ud800"})),
    "NaN as argument": lambda: _build_call("state_patch", '{"request_id": NaN, "ops": Infinity}'),
    "number of 5,000 digits": lambda: _build_call("state_patch", '{"request_id": ' + "9" * 5000 + "}"),
    "brackets, 100,000 deep": lambda: _build_body("[" * 100_000),
    "arguments, 10,000 deep": lambda: _build_call("state_patch", "[" * 10_000 + "]" * 10_000),
    "body of 15 MB": lambda: _build_large(15),
    "body of 17 MB": lambda: _build_large(17),
    "reset before the answer": lambda: ScriptedReply(raw=b"", ending=ConnectionEnd.RESET),
    "reset inside the answer": lambda: _build_broken(ConnectionEnd.RESET),
    "closed inside the answer": lambda: _build_broken(ConnectionEnd.CLOSE),
    "silence inside the answer": lambda: _build_broken(ConnectionEnd.HANG),
    "stream that breaks": lambda: _build_events(
        _render_delta(content="a\0"), _render_delta(tool_calls=[_CALL]), ending=ConnectionEnd.RESET
    ),
    "stream of garbage": lambda: _build_events(
        "{", "null", "[]", '{"choices": 7}', _render_delta(content=[1]), "[DONE]"
    ),
    "not HTTP": lambda: ScriptedReply(raw=b"\0\xff\r\n\r\nNUL", ending=ConnectionEnd.CLOSE),
    "empty body": lambda: _build_body(""),
    "JSON null": lambda: _build_body("null"),
    "choices of another kind": lambda: _build_body(
        '{"choices": [{"message": {"tool_calls": [[], 1, {"function": 7}]}}]}'
    ),
    "error 500": lambda: error_reply(500, "chaos \0"),
    "rate limited for 10^9 s": lambda: ScriptedReply(429, _JSON_HEADERS | {"retry-after": "1000000000"}, b"{}"),
}
LARGE_POISONS = ("body of 15 MB", "body of 17 MB")
