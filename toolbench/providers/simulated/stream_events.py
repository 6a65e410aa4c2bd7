"""Completion as events of a stream, and the faults that only streams have."""

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from toolbench.engine.types import JsonObject

DONE_EVENT = "[DONE]"
MIN_PIECE_CHARS, MAX_PIECE_CHARS = 3, 12  # of a part of a text
COMMENT_EVENT = b": still there (simulated)\n\n"
_AFTER_COLON = re.compile(rb"^(data|event): ", re.MULTILINE)

Events = list[JsonObject | str]
StreamFault = Callable[[Events], None]
Chunks = tuple[bytes, ...]
LineFault = Callable[[Chunks], Chunks]


def build_events(completion: JsonObject, draw: random.Random, *, with_usage: bool) -> Events:
    """Build the events of an ordinary stream.

    They are a role, the texts in parts, the finish reason, the usage if requested, and [DONE].
    """
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
    """Encode the events, one chunk of bytes per event."""
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
    """Yield a text in parts of random length; any other value is yielded whole."""
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
    """Remove the index of every call."""
    for event in events:
        for call in _list_calls(event):
            call.pop("index")


def index_always_zero(events: Events) -> None:
    """Set the index of every call to 0."""
    for event in events:
        for call in _list_calls(event):
            call["index"] = 0


def cut_inside_arguments(events: Events) -> None:
    """End the stream normally in the middle of the last call's arguments."""
    heads = [place for place, event in enumerate(events) if any("id" in call for call in _list_calls(event))]
    if heads:
        argument_events = sum(bool(_list_calls(event)) for event in events[heads[-1] + 1 :])
        del events[heads[-1] + 1 + argument_events // 2 :]


def done_missing(events: Events) -> None:
    """Remove the event [DONE]."""
    events.remove(DONE_EVENT)


def error_in_the_middle(events: Events) -> None:
    """Replace the second half of the events by an error object."""
    del events[max(2, len(events) // 2) :]
    events.append({"error": {"code": 502, "message": "Upstream went away (simulated)", "type": "upstream_error"}})


def name_repeated(events: Events) -> None:
    """Repeat the name in every delta of a call."""
    name = ""
    for event in events:
        for call in _list_calls(event):
            name = call["function"].get("name") or name
            call["function"]["name"] = name


def finish_blank(events: Events) -> None:
    """Set an empty finish reason in every chunk without one."""
    for event in events:
        if isinstance(event, dict) and event["choices"] and event["choices"][0]["finish_reason"] is None:
            event["choices"][0]["finish_reason"] = ""


def end_missing(events: Events) -> None:
    """Remove the finish reason and [DONE], so that the stream ends after complete calls."""
    events.remove(DONE_EVENT)
    for event in events:
        if isinstance(event, dict) and event["choices"]:
            event["choices"][0]["finish_reason"] = None


def begins_without_choices(events: Events) -> None:
    """Add Azure's first chunk, which has filter results but neither choices nor a model."""
    events.insert(0, {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": []})


def usage_missing(events: Events) -> None:
    """Remove the usage event."""
    events[:] = [event for event in events if isinstance(event, str) or "usage" not in event]


def lines_otherwise(chunks: Chunks) -> Chunks:
    """Return the same events with other line syntax.

    There is no blank after the colon, comments are in between, lines end in CRLF, and chunks end inside of a CRLF.
    """
    whole = b"".join(COMMENT_EVENT + _AFTER_COLON.sub(rb"\1:", chunk) for chunk in chunks).replace(b"\n", b"\r\n")
    return tuple(re.split(rb"(?<=\r\n\r)", whole))


LINE_FAULTS: dict[str, LineFault] = {lines_otherwise.__name__: lines_otherwise}  # for every wire format
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
