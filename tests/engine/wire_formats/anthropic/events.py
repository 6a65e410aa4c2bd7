"""Anthropic's answers, whole and as the events of a stream."""

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


def list_events(whole: JsonObject, size: int = 3) -> list[JsonObject]:
    """The answer as Anthropic would stream it, its texts in pieces of `size`."""
    started = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    made: list[JsonObject] = [{"type": "message_start", "message": started}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        start, deltas = _split_block(block, size)
        made.append({"type": "content_block_start", "index": index, "content_block": start})
        made += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        made.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"]}
    made.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": whole["usage"]["output_tokens"]}})
    return [*made, {"type": "message_stop"}]


def _split_block(block: JsonObject, size: int) -> tuple[JsonObject, list[JsonObject]]:
    kind = block["type"]
    if kind in _DELTA_BY_BLOCK:
        name, delta = _DELTA_BY_BLOCK[kind]
        deltas = [{"type": delta, name: piece} for piece in iter_chunks(block[name], size)]
        if "signature" not in block:
            return {**block, name: ""}, deltas
        return {**block, name: "", "signature": ""}, [
            *deltas,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if kind == "tool_use":
        written = json.dumps(block["input"]) if block["input"] else ""
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *iter_chunks(written, size))]
        return {**block, "input": {}}, deltas
    return block, []


def render_stream(whole: JsonObject, size: int = 3) -> bytes:
    return b"".join(map(render_event, list_events(whole, size)))
