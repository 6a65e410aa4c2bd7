"""Reader of OTLP JSON spans with attributes of OpenTelemetry's semantic conventions for GenAI."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.traffic.exchanges import (
    ExchangeSkippedError,
    RecordedExchange,
    build_exchange,
    parse_json_text,
)
from toolbench.lab.interchange.traffic.openai import merge_answer


def iter_spans(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the attributes of each span of an OTLP record, except spans without an attribute `gen_ai.…`."""
    for resource in _list_objects(record.get("resourceSpans")):
        for scope in _list_objects(resource.get("scopeSpans")):
            for span in _list_objects(scope.get("spans")):
                attributes = _read_attributes(span.get("attributes"))
                if any(name.startswith("gen_ai.") for name in attributes):
                    yield attributes


def read_span(attributes: Mapping[str, Any]) -> RecordedExchange:
    """Return the exchange of a span from its attributes.

    Raises:
        ExchangeSkippedError: no case can be created from the span.
    """
    if attributes.get("gen_ai.operation.name", "chat") not in ("chat", "generate_content", "text_completion"):
        raise ExchangeSkippedError("the span is not a request to a model")
    messages = _convert_messages(attributes.get("gen_ai.input.messages"))
    instructions = _join_instructions(attributes.get("gen_ai.system_instructions"))
    if instructions:
        messages.insert(0, {"role": "system", "content": instructions})
    if "gen_ai.output.messages" not in attributes:
        raise ExchangeSkippedError("the record has no answer")
    answer = merge_answer(_convert_messages(attributes["gen_ai.output.messages"]))
    model = attributes.get("gen_ai.response.model") or attributes.get("gen_ai.request.model")
    return build_exchange(messages, _parse_json(attributes.get("gen_ai.tool.definitions")), answer, model)


def _list_objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _read_attributes(attributes: Any) -> dict[str, Any]:
    return {str(entry.get("key")): _read_value(entry.get("value")) for entry in _list_objects(attributes)}


def _read_value(value: Any) -> Any:
    """Return the value in an OTLP AnyValue: "chat" for `{"stringValue": "chat"}`; None if it cannot be read."""
    if not isinstance(value, Mapping):
        return None
    if "arrayValue" in value:
        array = value["arrayValue"]
        return [_read_value(item) for item in _list_objects(array.get("values"))] if isinstance(array, Mapping) else []
    if "kvlistValue" in value:
        pairs = value["kvlistValue"]
        return _read_attributes(pairs.get("values")) if isinstance(pairs, Mapping) else {}
    return next(iter(value.values()), None)


def _parse_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_json_text(value)
    except InvalidJsonError:
        raise ExchangeSkippedError("an attribute of the span is not JSON") from None


def _join_instructions(value: Any) -> str:
    parts = _list_objects(_parse_json(value)) if value else []
    return "".join(str(part.get("content") or "") for part in parts)


def _convert_messages(value: Any) -> list[JsonObject]:
    """Convert messages with parts to chat messages, without reasoning. Each tool response becomes its own message."""
    messages: list[JsonObject] = []
    for message in _list_objects(_parse_json(value)):
        chat_message: JsonObject = {"role": message.get("role"), "content": "", "tool_calls": []}
        for part in _list_objects(message.get("parts")):
            response = _add_part(chat_message, part)
            messages += [response] if response else []
        if chat_message["content"] or chat_message["tool_calls"] or chat_message["role"] != "tool":
            messages.append(chat_message)
    return messages


def _add_part(message: JsonObject, part: Mapping[str, Any]) -> JsonObject | None:
    """Add a text or a call to a message; return a separate tool message for the response of a tool.

    Raises:
        ExchangeSkippedError: the part is no text, call, tool response or reasoning.
    """
    kind = part.get("type")
    if kind == "text":
        message["content"] += str(part.get("content") or "")
    elif kind == "tool_call":
        function = {"name": part.get("name"), "arguments": part.get("arguments")}
        message["tool_calls"].append({"id": part.get("id"), "function": function})
    elif kind == "tool_call_response":
        content = part.get("response", part.get("result"))
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return {"role": "tool", "tool_call_id": part.get("id"), "content": text}
    elif kind != "reasoning":
        raise ExchangeSkippedError("a message has an image, a file or another part that is not text")
    return None
