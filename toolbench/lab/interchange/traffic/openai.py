"""Reader of records in the formats of chat completions and Responses.

A record has one of three forms:

- `{"request": …, "response": …}`, where either may be wrapped in `{"body": …}`;
- an example for fine-tuning, `{"messages": …, "tools": …}`, whose last message is the answer;
- one object with the fields of the request and of the response.
"""

from collections.abc import Mapping
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.traffic.exchanges import (
    ExchangeSkippedError,
    RecordedExchange,
    build_exchange,
    join_text,
)


def read_record(record: Mapping[str, Any]) -> RecordedExchange:
    """Return the exchange of a record.

    Raises:
        ExchangeSkippedError: no case can be created from the record.
    """
    request, response = _unwrap_body(record.get("request", record)), _unwrap_body(record.get("response", record))
    model = response.get("model") or request.get("model")
    if "input" in request and "messages" not in request:
        answer_messages = convert_items(response.get("output"), "the record has no answer")
        request_messages = convert_items(request["input"], "the request has no messages")
        if isinstance(request.get("instructions"), str):
            request_messages.insert(0, {"role": "system", "content": request["instructions"]})
        return build_exchange(request_messages, request.get("tools"), merge_answer(answer_messages), model)
    messages = request.get("messages")
    if "choices" in response:
        return build_exchange(messages, request.get("tools"), _find_answer_message(response["choices"]), model)
    if not isinstance(messages, list) or len(messages) < 2 or not isinstance(messages[-1], Mapping):
        raise ExchangeSkippedError("the record has no answer")
    if messages[-1].get("role") != "assistant":
        raise ExchangeSkippedError("the record has no answer")
    return build_exchange(messages[:-1], request.get("tools"), messages[-1], model)


def _unwrap_body(value: Any) -> Mapping[str, Any]:
    """Return the object under `body`, or the object itself if it has no `body`.

    Raises:
        ExchangeSkippedError: `value` or its `body` is not an object.
    """
    body = value.get("body", value) if isinstance(value, Mapping) else None
    if not isinstance(body, Mapping):
        raise ExchangeSkippedError("the request or the response is not an object")
    return body


def _find_answer_message(choices: Any) -> Any:
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("message") if isinstance(first, Mapping) else None


def convert_items(items: Any, missing_reason: str) -> list[JsonObject]:
    """Convert the items of a request or answer of Responses to chat messages, without items of reasoning.

    Args:
        items: a list of items; a text becomes one user message.
        missing_reason: message of the error if `items` is neither a list nor a text.

    Raises:
        ExchangeSkippedError: `items` is neither a list nor a text, or an item cannot be read.
    """
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    if not isinstance(items, list):
        raise ExchangeSkippedError(missing_reason)
    return [message for item in items if (message := _convert_item(item))]


def _convert_item(item: Any) -> JsonObject | None:
    if not isinstance(item, Mapping):
        raise ExchangeSkippedError("an item is not an object")
    kind = item.get("type", "message")
    if kind == "reasoning":
        return None
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        return {"role": "assistant", "content": "", "tool_calls": [{"id": item.get("call_id"), "function": function}]}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
    if kind == "message":
        return {"role": item.get("role"), "content": join_text(item.get("content"))}
    raise ExchangeSkippedError("an item is neither a message nor a function call")


def merge_answer(messages: list[JsonObject]) -> JsonObject:
    """Return one assistant message with the calls of all these messages, but without their texts."""
    return {"role": "assistant", "tool_calls": [call for message in messages for call in message.get("tool_calls", ())]}
