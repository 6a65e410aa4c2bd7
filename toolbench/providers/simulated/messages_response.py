"""Rendering of a completion in Anthropic's Messages format, whole or as a stream, and stream faults."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.error_replies import Reply
from toolbench.providers.simulated.stream_events import split_text

STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "function_call": "tool_use", "length": "max_tokens"}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    502: "overloaded_error",
    503: "overloaded_error",
}
SIGNATURE = "c2ltdWxhdGVk"  # of the reasoning; base64 of "simulated"

Events = list[JsonObject]


def render_message(completion: JsonObject) -> JsonObject:
    """Convert a completion to a response of the Messages API.

    A text of arguments that is not a JSON object is kept as it is; Anthropic itself never sends such arguments.
    """
    choice, usage = completion["choices"][0], completion["usage"]
    finish_reason = choice["finish_reason"]
    return {
        "id": f"msg_{completion['id']}",
        "type": "message",
        "role": "assistant",
        "model": completion["model"],
        "content": list(_render_blocks(choice["message"])),
        "stop_reason": STOP_REASONS.get(finish_reason, finish_reason),
        "stop_sequence": None,
        "usage": {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]},
    }


def _render_blocks(message: JsonObject) -> Iterator[JsonObject]:
    if reasoning := message.get("reasoning") or message.get("reasoning_content"):
        yield {"type": "thinking", "thinking": reasoning, "signature": SIGNATURE}
    content = message.get("content")
    for part in content if isinstance(content, list) else [{"text": content}]:
        if part["text"]:
            yield {"type": "text", "text": part["text"]}
    calls = message.get("tool_calls") or ()
    for call in [calls] if isinstance(calls, dict) else calls:
        yield _render_tool_use(call["id"], call["function"])
    if legacy := message.get("function_call"):
        yield _render_tool_use("toolu_simulated", legacy)


def _render_tool_use(call_id: str, function: JsonObject) -> JsonObject:
    return {"type": "tool_use", "id": call_id, "name": function["name"], "input": _parse_input(function["arguments"])}


def _parse_input(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def build_message_events(completion: JsonObject, generator: random.Random, *, with_usage: bool = True) -> Events:
    """Build the events of a stream of the Messages API.

    The events are: start, ping, each block in parts, stop reason with usage, end.

    Args:
        completion: the completion.
        generator: random generator for the lengths of the parts.
        with_usage: ignored, because the events always have a usage.
    """
    message = render_message(completion)
    usage = message["usage"]
    head = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events: Events = [{"type": "message_start", "message": head}, {"type": "ping"}]
    for index, block in enumerate(message["content"]):
        start, deltas = _split_block(block, generator)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}})
    return [*events, {"type": "message_stop"}]


def _split_block(block: JsonObject, generator: random.Random) -> tuple[JsonObject, list[JsonObject]]:
    """Return the block without its content, and the deltas with its content."""
    if block["type"] == "text":
        texts = split_text(block["text"], generator)
        return {**block, "text": ""}, [{"type": "text_delta", "text": text} for text in texts]
    if block["type"] == "thinking":
        thoughts = split_text(block["thinking"], generator)
        deltas = [{"type": "thinking_delta", "thinking": thought} for thought in thoughts]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
    # As at Anthropic, the first delta of a call is empty.
    input_text = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
    parts = split_text("" if block["input"] == {} else input_text, generator)
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in ("", *parts)]


def render_anthropic_error(reply: Reply) -> Reply:
    """Convert an error to Anthropic's format; a reply without a JSON error is returned unchanged."""
    try:
        error = json.loads(reply.body)["error"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return reply
    error_body = {"type": ERROR_TYPES.get(error.get("code"), "api_error"), "message": error.get("message")}
    body = {"type": "error", "error": error_body, "request_id": "req_simulated"}
    return Reply(json.dumps(body).encode(), reply.status, reply.content_type, reply.headers)


def _index_missing(events: Events) -> None:
    for event in events:
        event.pop("index", None)


def _index_always_zero(events: Events) -> None:
    for event in events:
        event.update({"index": 0} if "index" in event else {})


def _cut_inside_arguments(events: Events) -> None:
    """Remove all events after the middle of the last call's arguments."""
    call_starts = [
        index for index, event in enumerate(events) if event.get("content_block", {}).get("type") == "tool_use"
    ]
    if call_starts:
        delta_count = sum(event["type"] == "content_block_delta" for event in events[call_starts[-1] :])
        del events[call_starts[-1] + 1 + delta_count // 2 :]


def _done_missing(events: Events) -> None:
    del events[-1]


def _error_in_the_middle(events: Events) -> None:
    del events[max(3, len(events) // 2) :]
    events.append({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded (simulated)"}})


def _usage_missing(events: Events) -> None:
    for event in events:
        event.pop("usage", None)
        event.get("message", {}).pop("usage", None)


MESSAGE_STREAM_FAULTS: dict[str, Callable[[Events], None]] = {
    "index_missing": _index_missing,
    "index_always_zero": _index_always_zero,
    "cut_inside_arguments": _cut_inside_arguments,
    "done_missing": _done_missing,
    "error_in_the_middle": _error_in_the_middle,
    "usage_missing": _usage_missing,
}
