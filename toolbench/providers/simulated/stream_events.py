"""A completion as the events of a stream, and the drifts that befall streams alone."""

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from toolbench.engine.types import JsonObject

DONE_EVENT = "[DONE]"
MIN_PIECE_CHARS, MAX_PIECE_CHARS = 3, 12  # characters of a piece of text
COMMENT_EVENT = b": still there (simulated)\n\n"
_AFTER_COLON = re.compile(rb"^(data|event): ", re.MULTILINE)

Events = list[JsonObject | str]
StreamFault = Callable[[Events], None]
Chunks = tuple[bytes, ...]
LineFault = Callable[[Chunks], Chunks]


def build_events(completion: JsonObject, draw: random.Random, *, with_usage: bool) -> Events:
    """What an ordinary endpoint would send: a role, the texts in pieces, the finish reason, the usage where it was
    asked for, and [DONE]."""
    choice = completion["choices"][0]
    head = {key: value for key, value in completion.items() if key not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"

    def event(delta: JsonObject, finish: str | None = None) -> JsonObject:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events: Events = [event(delta) for delta in _build_deltas(choice["message"], draw)]
    events.append(event({}, choice["finish_reason"]))
    if with_usage:
        events.append({**head, "choices": [], "usage": completion["usage"]})
    return [*events, DONE_EVENT]


def encode_chat_events(events: Events) -> tuple[bytes, ...]:
    """One chunk of bytes per event."""
    return tuple(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode() for event in events)


def _build_deltas(message: JsonObject, draw: random.Random) -> Iterator[JsonObject]:
    yield {"role": message["role"]}
    for key, value in message.items():
        if key == "tool_calls":
            calls = value if isinstance(value, list) else [value]
            for index, call in enumerate(calls):
                yield from _build_call_deltas(index, call, draw, lone=not isinstance(value, list))
        elif key == "function_call":
            yield from ({key: part} for part in _build_function_deltas(value, draw))
        elif key != "role" and value is not None:
            yield from ({key: part} for part in split_text(value, draw))


def _build_call_deltas(index: int, call: JsonObject, draw: random.Random, *, lone: bool) -> Iterator[JsonObject]:
    first, *rest = _build_function_deltas(call["function"], draw)
    for part in ({**call, "function": first}, *({"function": part} for part in rest)):
        item = {"index": index, **part}
        yield {"tool_calls": item if lone else [item]}


def _build_function_deltas(function: JsonObject, draw: random.Random) -> list[JsonObject]:
    written = function["arguments"]
    if not isinstance(written, str):
        return [function]
    return [{**function, "arguments": ""}, *({"arguments": piece} for piece in split_text(written, draw))]


def split_text(value: Any, draw: random.Random) -> Iterator[Any]:
    """A text cut into pieces; anything else in one."""
    if not isinstance(value, str):
        yield value
        return
    at = 0
    longest = max(MAX_PIECE_CHARS, len(value) // 200)
    while at < len(value):
        end = at + draw.randint(MIN_PIECE_CHARS, longest)
        yield value[at:end]
        at = end


def _list_calls(event: JsonObject | str) -> list[JsonObject]:
    choices = event["choices"] if isinstance(event, dict) else []
    calls = choices[0]["delta"].get("tool_calls", []) if choices else []
    return calls if isinstance(calls, list) else [calls]


def index_missing(events: Events) -> None:
    for event in events:
        for call in _list_calls(event):
            call.pop("index")


def index_always_zero(events: Events) -> None:
    for event in events:
        for call in _list_calls(event):
            call["index"] = 0


def cut_inside_arguments(events: Events) -> None:
    """The stream ends, politely, in the middle of the last call's arguments."""
    heads = [place for place, event in enumerate(events) if any("id" in call for call in _list_calls(event))]
    if heads:
        argument_events = sum(bool(_list_calls(event)) for event in events[heads[-1] + 1 :])
        del events[heads[-1] + 1 + argument_events // 2 :]


def done_missing(events: Events) -> None:
    events.remove(DONE_EVENT)


def error_in_the_middle(events: Events) -> None:
    """An error object instead of what would follow."""
    del events[max(2, len(events) // 2) :]
    events.append({"error": {"code": 502, "message": "Upstream went away (simulated)", "type": "upstream_error"}})


def name_repeated(events: Events) -> None:
    """The name again in every delta of a call."""
    name = ""
    for event in events:
        for call in _list_calls(event):
            name = call["function"].get("name") or name
            call["function"]["name"] = name


def finish_blank(events: Events) -> None:
    """An empty finish reason in every chunk but the last."""
    for event in events:
        if isinstance(event, dict) and event["choices"] and event["choices"][0]["finish_reason"] is None:
            event["choices"][0]["finish_reason"] = ""


def end_missing(events: Events) -> None:
    """Neither a finish reason nor [DONE]: the stream just ends, behind whole calls."""
    events.remove(DONE_EVENT)
    for event in events:
        if isinstance(event, dict) and event["choices"]:
            event["choices"][0]["finish_reason"] = None


def begins_without_choices(events: Events) -> None:
    """Azure's first chunk: the results of its filter, no choices, no model."""
    events.insert(0, {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": []})


def usage_missing(events: Events) -> None:
    events[:] = [event for event in events if isinstance(event, str) or "usage" not in event]


def lines_otherwise(chunks: Chunks) -> Chunks:
    """The same events with no blank behind the colon, comments in between, and lines that end in CRLF; chunks end
    inside of one."""
    whole = b"".join(COMMENT_EVENT + _AFTER_COLON.sub(rb"\1:", chunk) for chunk in chunks).replace(b"\n", b"\r\n")
    return tuple(re.split(rb"(?<=\r\n\r)", whole))


LINE_FAULTS: dict[str, LineFault] = {lines_otherwise.__name__: lines_otherwise}  # of any wire
STREAM_FAULTS: dict[str, StreamFault] = {
    drift.__name__: drift
    for drift in (
        index_missing,
        index_always_zero,
        cut_inside_arguments,
        done_missing,
        error_in_the_middle,
        usage_missing,
        name_repeated,
        finish_blank,
        end_missing,
        begins_without_choices,
    )
}
