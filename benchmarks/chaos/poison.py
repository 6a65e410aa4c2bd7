"""Poisoned answers: what a broken or hostile provider may send to a run, each by its name."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.providers.scripted_server import Answer, Ending, completion, fails

_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream"}
_CALL = {"id": "call_1", "type": "function", "function": {"name": "state_get", "arguments": "{}"}}


def _body(text: str, **more: Any) -> Answer:
    return Answer(200, _JSON, text.encode("utf-8", "surrogatepass"), **more)


def _usage(number: str) -> Answer:
    """A good answer that says `number`, written in JSON, in each figure of its usage."""
    details = {"cached_tokens": "n", "reasoning_tokens": "n"}
    usage: JsonObject = {"prompt_tokens": "n", "completion_tokens": "n", "total_tokens": "n", "cost": "n"}
    usage |= {"prompt_tokens_details": details, "completion_tokens_details": details}
    choice = {"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}
    answer = {"id": "poisoned", "model": "poisoned", "choices": [choice]}
    return _body(json.dumps(answer)[:-1] + f', "usage": {json.dumps(usage)}}}'.replace('"n"', number))


def _call(name: str, arguments: str) -> Answer:
    made: JsonObject = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return completion({"content": None, "tool_calls": [made]}, finish_reason="tool_calls")


def _events(*texts: str, ending: Ending = Ending.CLOSE) -> Answer:
    return Answer(200, _EVENTS, "".join(f"data: {text}\n\n" for text in texts).encode(), ending=ending)


def _delta(**delta: Any) -> str:
    return json.dumps({"id": "p", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def _broken(ending: Ending) -> Answer:
    """Half of a body, of which more was promised."""
    body = completion({"content": "Done."}).body
    assert isinstance(body, bytes)
    return Answer(200, _JSON, body[:60], declared=len(body), ending=ending)


def _large(megabytes: int) -> Answer:
    return completion({"content": "x" * (megabytes * 1_000_000)})


POISONS: Mapping[str, Callable[[], Answer]] = {
    "usage 10^30": lambda: _usage("1" + "0" * 30),
    "usage 2^63": lambda: _usage(str(2**63)),
    "usage 2^31": lambda: _usage(str(2**31)),
    "usage 1e308": lambda: _usage("1e308"),
    "usage NaN": lambda: _usage("NaN"),
    "usage Infinity": lambda: _usage("Infinity"),
    "usage -1": lambda: _usage("-1"),
    "usage text": lambda: _usage('"many"'),
    "usage list": lambda: _usage("[1, 2]"),
    "NUL in every text": lambda: completion({"content": "a\0b", "tool_calls": [_CALL]}, model="m\0", id="\0"),
    "lone surrogates": lambda: completion({"content": "\ud800", "reasoning_content": "\udfff"}, model="\ud83d"),
    "NUL in a call": lambda: _call("state\0get", json.dumps({"request_id": "\0\ud800"})),
    "NaN as argument": lambda: _call("state_patch", '{"request_id": NaN, "ops": Infinity}'),
    "number of 5,000 digits": lambda: _call("state_patch", '{"request_id": ' + "9" * 5000 + "}"),
    "brackets, 100,000 deep": lambda: _body("[" * 100_000),
    "arguments, 10,000 deep": lambda: _call("state_patch", "[" * 10_000 + "]" * 10_000),
    "body of 15 MB": lambda: _large(15),
    "body of 17 MB": lambda: _large(17),
    "reset before the answer": lambda: Answer(raw=b"", ending=Ending.RESET),
    "reset inside the answer": lambda: _broken(Ending.RESET),
    "closed inside the answer": lambda: _broken(Ending.CLOSE),
    "silence inside the answer": lambda: _broken(Ending.HANG),
    "stream that breaks": lambda: _events(_delta(content="a\0"), _delta(tool_calls=[_CALL]), ending=Ending.RESET),
    "stream of garbage": lambda: _events("{", "null", "[]", '{"choices": 7}', _delta(content=[1]), "[DONE]"),
    "not HTTP": lambda: Answer(raw=b"\0\xff\r\n\r\nNUL", ending=Ending.CLOSE),
    "empty body": lambda: _body(""),
    "JSON null": lambda: _body("null"),
    "choices of another kind": lambda: _body('{"choices": [{"message": {"tool_calls": [[], 1, {"function": 7}]}}]}'),
    "error 500": lambda: fails(500, "chaos \0"),
    "rate limited for 10^9 s": lambda: Answer(429, _JSON | {"retry-after": "1000000000"}, b"{}"),
}
LARGE = ("body of 15 MB", "body of 17 MB")
