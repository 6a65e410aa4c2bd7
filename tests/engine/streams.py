"""Builders of streamed answers in the chat completions format."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from toolbench.engine.types import JsonObject


def render_event(payload: Any) -> bytes:
    return b"data: " + (payload if isinstance(payload, bytes) else json.dumps(payload).encode()) + b"\n\n"


def render_chunk(delta: JsonObject | None = None, *, finish: str | None = None, **more: Any) -> bytes:
    """Return one event of a stream; without a choice if `delta` is None."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return render_event({"model": "m-1", "choices": choices, **more})


def build_call_delta(arguments: Any = None, *, name: str | None = None, **more: Any) -> JsonObject:
    """Return a delta with one tool call; a name or arguments of None are left out."""
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"function": {k: v for k, v in function.items() if v is not None}, **more}]}


def render_stream(*events: bytes, finish: str = "tool_calls", usage: bool = True, done: bool = True) -> bytes:
    """Return a stream of these events, followed by finish reason, usage and [DONE]."""
    tokens = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    ending = [render_chunk({}, finish=finish)] if finish else []
    ending += [render_chunk(usage=tokens)] if usage else []
    return b"".join([*events, *ending, *([render_event(b"[DONE]")] if done else [])])


def iter_chunks(text: str, size: int) -> Iterator[str]:
    yield from (text[start : start + size] for start in range(0, len(text), size))


def render_as_stream(body: bytes, size: int = 3) -> bytes:
    """Return the stream of a complete answer, with texts in chunks of `size` characters."""
    root = json.loads(body)
    choice = root.pop("choices")[0]
    usage = root.pop("usage", None)
    deltas = list(_iter_deltas(choice["message"], size))
    events = [
        render_event({**root, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas
    ]
    end = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}
    events += [
        render_event({**root, "choices": [end]}),
        render_event({**root, "choices": [], "usage": usage}),
        render_event(b"[DONE]"),
    ]
    return b"".join(events)


def _iter_deltas(message: JsonObject, size: int) -> Iterator[JsonObject]:
    yield {"role": message.get("role", "assistant")}
    for key, value in message.items():
        if key in ("role", "tool_calls"):
            continue
        yield from ({key: part} for part in (iter_chunks(value, size) if isinstance(value, str) else [value]))
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        yield {"tool_calls": calls}
        return
    for index, call in enumerate(calls):
        function = dict(call["function"])
        arguments = function.pop("arguments", None)
        first = "" if isinstance(arguments, str) else arguments
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": first}}]}
        for part in iter_chunks(arguments, size) if isinstance(arguments, str) else ():
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def split_at(body: bytes, offsets: Iterable[int]) -> Sequence[bytes]:
    """Return the body split at these offsets, each taken modulo the length plus 1."""
    cuts = sorted({offset % (len(body) + 1) for offset in offsets} | {0, len(body)})
    return [body[start:end] for start, end in pairwise(cuts)]
