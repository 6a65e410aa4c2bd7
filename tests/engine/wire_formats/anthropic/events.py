"""Builders of Anthropic's answers, complete and as the events of a stream."""

import json
from typing import Any

from tests.engine.streams import iter_chunks
from toolbench.engine.types import JsonObject

USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}
_DELTA_BY_BLOCK = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta")}


def build_message(*blocks: JsonObject, stop: str | None = "end_turn", **more: Any) -> JsonObject:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test"}
    return {**head, "content": list(blocks), "stop_reason": stop, "stop_sequence": None, "usage": USAGE, **more}


def render_event(payload: JsonObject) -> bytes:
    return f"event: {payload['type']}\ndata: {json.dumps(payload)}\n\n".encode()


def list_events(answer: JsonObject, size: int = 3) -> list[JsonObject]:
    """Return the events of an answer, with texts in chunks of `size` characters."""
    started = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    events: list[JsonObject] = [{"type": "message_start", "message": started}, {"type": "ping"}]
    for index, block in enumerate(answer["content"]):
        start, deltas = _split_block(block, size)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": answer["stop_reason"], "stop_sequence": answer["stop_sequence"]}
    events.append(
        {"type": "message_delta", "delta": ending, "usage": {"output_tokens": answer["usage"]["output_tokens"]}}
    )
    return [*events, {"type": "message_stop"}]


def _split_block(block: JsonObject, size: int) -> tuple[JsonObject, list[JsonObject]]:
    kind = block["type"]
    if kind in _DELTA_BY_BLOCK:
        name, delta = _DELTA_BY_BLOCK[kind]
        deltas = [{"type": delta, name: chunk} for chunk in iter_chunks(block[name], size)]
        if "signature" not in block:
            return {**block, name: ""}, deltas
        return {**block, name: "", "signature": ""}, [
            *deltas,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if kind == "tool_use":
        input_json = json.dumps(block["input"]) if block["input"] else ""
        deltas = [{"type": "input_json_delta", "partial_json": chunk} for chunk in ("", *iter_chunks(input_json, size))]
        return {**block, "input": {}}, deltas
    return block, []


def render_stream(answer: JsonObject, size: int = 3) -> bytes:
    return b"".join(map(render_event, list_events(answer, size)))
