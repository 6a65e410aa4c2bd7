"""Events of a streamed chat completion, and the faults that only streams have.

A fault function has the name of its fault in data/personas.json. It changes the events in place; a fault in LINE_FAULTS
instead takes the encoded chunks and returns changed ones.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from toolbench.engine.types import JsonObject

DONE_EVENT = "[DONE]"
MIN_PART_CHARS, MAX_PART_CHARS = 3, 12  # longer for a long text, so that it has at most about 400 parts
COMMENT_EVENT = b": still there (simulated)\n\n"
_FIELD_PREFIX = re.compile(rb"^(data|event): ", re.MULTILINE)

Events = list[JsonObject | str]
StreamFault = Callable[[Events], None]
Chunks = tuple[bytes, ...]
LineFault = Callable[[Chunks], Chunks]


def build_events(completion: JsonObject, generator: random.Random, *, with_usage: bool) -> Events:
    """Build the events of a correct stream: role, texts and calls in parts, finish reason, usage, [DONE].

    Args:
        completion: the completion.
        generator: random generator for the lengths of the parts.
        with_usage: whether to add the usage.
    """
    choice = completion["choices"][0]
    shared = {key: value for key, value in completion.items() if key not in ("choices", "usage")}
    shared["object"] = "chat.completion.chunk"

    def build_event(delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
        return {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    events: Events = [build_event(delta) for delta in _build_deltas(choice["message"], generator)]
    events.append(build_event({}, choice["finish_reason"]))
    if with_usage:
        events.append({**shared, "choices": [], "usage": completion["usage"]})
    return [*events, DONE_EVENT]


def encode_chat_events(events: Events) -> tuple[bytes, ...]:
    """Encode the events, one chunk of bytes per event."""
    return tuple(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode() for event in events)


def encode_typed_events(events: list[JsonObject]) -> tuple[bytes, ...]:
    """Encode the events of Messages or Responses, which have a type, one chunk of bytes per event."""
    return tuple(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def _build_deltas(message: JsonObject, generator: random.Random) -> Iterator[JsonObject]:
    yield {"role": message["role"]}
    for key, value in message.items():
        if key == "tool_calls":
            calls = value if isinstance(value, list) else [value]
            for index, call in enumerate(calls):
                yield from _build_call_deltas(index, call, generator, in_list=isinstance(value, list))
        elif key == "function_call":
            yield from ({key: part} for part in _build_function_deltas(value, generator))
        elif key != "role" and value is not None:
            yield from ({key: part} for part in split_text(value, generator))


def _build_call_deltas(
    index: int, call: JsonObject, generator: random.Random, *, in_list: bool
) -> Iterator[JsonObject]:
    first, *rest = _build_function_deltas(call["function"], generator)
    for part in ({**call, "function": first}, *({"function": part} for part in rest)):
        item = {"index": index, **part}
        yield {"tool_calls": [item] if in_list else item}


def _build_function_deltas(function: JsonObject, generator: random.Random) -> list[JsonObject]:
    arguments = function["arguments"]
    if not isinstance(arguments, str):
        return [function]
    return [{**function, "arguments": ""}, *({"arguments": part} for part in split_text(arguments, generator))]


def split_text(value: Any, generator: random.Random) -> Iterator[Any]:
    """Yield a text in parts of random length, or any other value as it is."""
    if not isinstance(value, str):
        yield value
        return
    start = 0
    max_chars = max(MAX_PART_CHARS, len(value) // 200)
    while start < len(value):
        end = start + generator.randint(MIN_PART_CHARS, max_chars)
        yield value[start:end]
        start = end


def _list_call_deltas(event: JsonObject | str) -> list[JsonObject]:
    choices = event["choices"] if isinstance(event, dict) else []
    calls = choices[0]["delta"].get("tool_calls", []) if choices else []
    return calls if isinstance(calls, list) else [calls]


def index_missing(events: Events) -> None:
    """Remove the index of every call."""
    for event in events:
        for call in _list_call_deltas(event):
            call.pop("index")


def index_always_zero(events: Events) -> None:
    """Set the index of every call to 0."""
    for event in events:
        for call in _list_call_deltas(event):
            call["index"] = 0


def cut_inside_arguments(events: Events) -> None:
    """Remove all events after the middle of the last call's arguments."""
    call_starts = [
        index for index, event in enumerate(events) if any("id" in call for call in _list_call_deltas(event))
    ]
    if call_starts:
        delta_count = sum(bool(_list_call_deltas(event)) for event in events[call_starts[-1] + 1 :])
        del events[call_starts[-1] + 1 + delta_count // 2 :]


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
        for call in _list_call_deltas(event):
            name = call["function"].get("name") or name
            call["function"]["name"] = name


def finish_blank(events: Events) -> None:
    """Set the finish reason to "" in every event that has none."""
    for event in events:
        if isinstance(event, dict) and event["choices"] and event["choices"][0]["finish_reason"] is None:
            event["choices"][0]["finish_reason"] = ""


def end_missing(events: Events) -> None:
    """Remove the finish reason and [DONE], so that the stream breaks off after a complete answer."""
    events.remove(DONE_EVENT)
    for event in events:
        if isinstance(event, dict) and event["choices"]:
            event["choices"][0]["finish_reason"] = None


def begins_without_choices(events: Events) -> None:
    """Add Azure's first event, which has filter results but no choices."""
    events.insert(0, {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": []})


def usage_missing(events: Events) -> None:
    """Remove the usage event."""
    events[:] = [event for event in events if isinstance(event, str) or "usage" not in event]


def lines_otherwise(chunks: Chunks) -> Chunks:
    """Return chunks with the same events in another valid syntax.

    No space follows a field's colon, a comment precedes each event, lines end in CRLF, and chunks end inside a CRLF.
    """
    stream = b"".join(COMMENT_EVENT + _FIELD_PREFIX.sub(rb"\1:", chunk) for chunk in chunks).replace(b"\n", b"\r\n")
    return tuple(re.split(rb"(?<=\r\n\r)", stream))


LINE_FAULTS: dict[str, LineFault] = {lines_otherwise.__name__: lines_otherwise}  # for every wire format
STREAM_FAULTS: dict[str, StreamFault] = {
    fault.__name__: fault
    for fault in (
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
