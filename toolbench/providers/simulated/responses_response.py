"""Rendering of a completion in OpenAI's Responses format, whole or as a stream, and stream faults."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.error_replies import Reply
from toolbench.providers.simulated.stream_events import split_text

ENCRYPTED_REASONING = "c2ltdWxhdGVk"  # base64 of "simulated"
_INCOMPLETE_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}

Events = list[JsonObject]


def render_response(completion: JsonObject) -> JsonObject:
    """Convert a completion to a response of the Responses API."""
    choice, usage = completion["choices"][0], completion["usage"]
    incomplete_reason = _INCOMPLETE_REASONS.get(choice["finish_reason"])
    items = list(_render_items(completion["id"], choice["message"], "incomplete" if incomplete_reason else "completed"))
    return {
        "id": f"resp_{completion['id']}",
        "object": "response",
        "created_at": completion["created"],
        "status": "incomplete" if incomplete_reason else "completed",
        "error": None,
        "incomplete_details": {"reason": incomplete_reason} if incomplete_reason else None,
        "model": completion["model"],
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "store": False,
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
    }


def _render_items(answer_id: str, message: JsonObject, status: str) -> Iterator[JsonObject]:
    reasoning = message.get("reasoning") or message.get("reasoning_content")
    tool_calls = message.get("tool_calls") or ()
    calls = [tool_calls] if isinstance(tool_calls, dict) else list(tool_calls)
    if legacy := message.get("function_call"):
        calls.append({"id": "call_simulated", "function": legacy})
    content = message.get("content")
    text = "".join(part["text"] for part in content) if isinstance(content, list) else content or ""
    if reasoning:
        summary = [{"type": "summary_text", "text": reasoning}]
        item_id = f"rs_{answer_id}"
        yield {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": ENCRYPTED_REASONING}
    if text or not calls:
        parts: list[JsonObject] = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
        yield {"type": "message", "id": f"msg_{answer_id}", "role": "assistant", "status": status, "content": parts}
    for index, call in enumerate(calls):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        fields = {"call_id": call["id"], "name": name, "arguments": arguments, "status": status}
        yield {"type": "function_call", "id": f"fc_{answer_id}_{index}", **fields}


def build_response_events(completion: JsonObject, generator: random.Random, *, with_usage: bool = True) -> Events:
    """Build the events of a stream of the Responses API: start, each item in parts, the whole response.

    Args:
        completion: the completion.
        generator: random generator for the lengths of the parts.
        with_usage: ignored, because the last event always has a usage.
    """
    response = render_response(completion)
    head = {**response, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    events: Events = [{"type": f"response.{step}", "response": head} for step in ("created", "in_progress")]
    for index, item in enumerate(response["output"]):
        for event in _build_item_events(item, generator):
            position = {"output_index": index} if "item" in event else {"item_id": item["id"], "output_index": index}
            events.append(event | position)
    events.append({"type": f"response.{response['status']}", "response": response})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _build_item_events(item: JsonObject, generator: random.Random) -> Iterator[JsonObject]:
    empty_fields: dict[str, JsonObject] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "reasoning": {"summary": []},
    }
    start = {**item, **empty_fields[item["type"]], **({"status": "in_progress"} if "status" in item else {})}
    yield {"type": "response.output_item.added", "item": start}
    if item["type"] == "function_call":
        name = "response.function_call_arguments"
        arguments = item["arguments"]
        arguments_text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        yield from ({"type": f"{name}.delta", "delta": part} for part in split_text(arguments_text, generator))
        yield {"type": f"{name}.done", "name": item["name"], "arguments": arguments}
    else:
        yield from _build_part_events(item, generator)
    yield {"type": "response.output_item.done", "item": item}


def _build_part_events(item: JsonObject, generator: random.Random) -> Iterator[JsonObject]:
    is_message = item["type"] == "message"
    part = item["content" if is_message else "summary"][0]
    part_name, text_name = (
        ("response.content_part", "response.output_text")
        if is_message
        else ("response.reasoning_summary_part", "response.reasoning_summary_text")
    )
    index = {"content_index": 0} if is_message else {"summary_index": 0}
    logprobs: JsonObject = {"logprobs": []} if is_message else {}
    yield {"type": f"{part_name}.added", **index, "part": {**part, "text": ""}}
    for text in split_text(part["text"], generator):
        yield {"type": f"{text_name}.delta", **index, "delta": text, **logprobs}
    yield {"type": f"{text_name}.done", **index, "text": part["text"], **logprobs}
    yield {"type": f"{part_name}.done", **index, "part": part}


def render_openai_error(reply: Reply) -> Reply:
    """Convert an error to the Responses format; a reply without a JSON error is returned unchanged.

    An error with status 200 becomes a response that failed.
    """
    try:
        error = json.loads(reply.body)["error"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return reply
    if reply.status == 200:
        failure = {"code": "server_error", "message": error.get("message")}
        body: Any = {"id": "resp_failed", "object": "response", "status": "failed", "error": failure, "output": []}
    else:
        body = {"error": {"param": None, **error}}
    return Reply(json.dumps(body).encode(), reply.status, reply.content_type, reply.headers)


def _index_missing(events: Events) -> None:
    for event in events:
        event.pop("output_index", None)
        event.pop("item_id", None)


def _index_always_zero(events: Events) -> None:
    for event in events:
        event.update({"output_index": 0} if "output_index" in event else {})


def _cut_inside_arguments(events: Events) -> None:
    """Remove all events after the middle of the last call's arguments."""
    item_starts = [index for index, event in enumerate(events) if event["type"] == "response.output_item.added"]
    call_starts = [index for index in item_starts if events[index]["item"]["type"] == "function_call"]
    if call_starts:
        arguments_events = events[call_starts[-1] :]
        delta_count = sum(event["type"] == "response.function_call_arguments.delta" for event in arguments_events)
        del events[call_starts[-1] + 1 + delta_count // 2 :]


def _done_missing(events: Events) -> None:
    del events[-1]


def _error_in_the_middle(events: Events) -> None:
    del events[max(3, len(events) // 2) :]
    failure = {"code": "server_error", "message": "Overloaded (simulated)", "param": None}
    events.append({"type": "error", **failure, "sequence_number": len(events)})


def _usage_missing(events: Events) -> None:
    for event in events:
        if "response" in event:
            event["response"] = {**event["response"], "usage": None}


RESPONSE_STREAM_FAULTS: dict[str, Callable[[Events], None]] = {
    "index_missing": _index_missing,
    "index_always_zero": _index_always_zero,
    "cut_inside_arguments": _cut_inside_arguments,
    "done_missing": _done_missing,
    "error_in_the_middle": _error_in_the_middle,
    "usage_missing": _usage_missing,
}
