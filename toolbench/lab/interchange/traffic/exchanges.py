"""Exchanges that other programs recorded: messages and tools of a request, and the calls of its answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import MAX_DEPTH, read_json
from toolbench.engine.types import JsonObject, Message

TOO_DEEP = f"the record is nested deeper than {MAX_DEPTH} levels"
_TEXT_PART_TYPES = ("text", "input_text", "output_text")
_CHAT_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class ExchangeSkippedError(Exception):
    """Record from which no case can be created; records that are skipped for the same reason have the same message."""


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """One request and the calls of its answer.

    Attributes:
        messages: messages of the request in the format of chat completions; the last is a user message.
        tools: tools of the request in the format of chat completions.
        calls: calls of the answer, as `{name, arguments}`; empty if the answer is text.
        model: name of the model that answered; empty if unknown.
    """

    messages: tuple[Message, ...]
    tools: tuple[JsonObject, ...]
    calls: tuple[JsonObject, ...]
    model: str


def build_exchange(messages: Any, tools: Any, answer: Any, model: Any) -> RecordedExchange:
    """Build an exchange from unchecked JSON in the format of chat completions.

    Args:
        messages: messages of the request.
        tools: tools of the request.
        answer: the assistant message that answers the request.
        model: name of the model; a value that is not a string counts as unknown.

    Raises:
        ExchangeSkippedError: no case can be created from the exchange.
    """
    if not isinstance(messages, list) or not messages:
        raise ExchangeSkippedError("the request has no messages")
    if not isinstance(answer, Mapping):
        raise ExchangeSkippedError("the record has no answer")
    chat_tools = tuple(_build_tool(tool) for tool in tools) if isinstance(tools, list) else ()
    if not chat_tools:
        raise ExchangeSkippedError("the request has no tools")
    chat_messages = tuple(_build_message(message) for message in messages)
    if chat_messages[-1]["role"] != "user":
        raise ExchangeSkippedError("the request does not end with a user message, so it continues an earlier exchange")
    calls = tuple(_build_call(call) for call in _list_calls(answer))
    return RecordedExchange(chat_messages, chat_tools, calls, model if isinstance(model, str) else "")


def join_text(content: Any) -> str:
    """Return the text of a message's content.

    Args:
        content: a string, a list of parts, or None for an empty text.

    Raises:
        ExchangeSkippedError: the content has another type, or a part is not text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise ExchangeSkippedError("the content of a message cannot be read")
    return "".join(_read_part(part) for part in content)


def parse_json_text(text: str) -> Any:
    """Return the JSON value in a text of a record.

    Raises:
        ExchangeSkippedError: the value is nested too deeply.
        InvalidJsonError: the text is not JSON.
    """
    try:
        return read_json(text)
    except InvalidJsonError as error:
        if error.code == "too_deep":
            raise ExchangeSkippedError(TOO_DEEP) from None
        raise


def _read_part(part: Any) -> str:
    if isinstance(part, Mapping) and part.get("type") in _TEXT_PART_TYPES and isinstance(part.get("text"), str):
        return str(part["text"])
    raise ExchangeSkippedError("a message has an image, a file or another part that is not text")


def _build_message(message: Any) -> Message:
    role = _CHAT_ROLES.get(str(message.get("role"))) if isinstance(message, Mapping) else None
    if role is None:
        raise ExchangeSkippedError("a message has no known role")
    chat_message: Message = {"role": role, "content": join_text(message.get("content"))}
    if role == "assistant" and _list_calls(message):
        chat_message["tool_calls"] = [_build_history_call(call) for call in _list_calls(message)]
    if role == "tool":
        chat_message["tool_call_id"] = str(message.get("tool_call_id") or "")
    return chat_message


def _list_calls(message: Mapping[str, Any]) -> Sequence[Any]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else ()


def _build_history_call(call: Any) -> JsonObject:
    parsed = _build_call(call)
    function = {"name": parsed["name"], "arguments": json.dumps(parsed["arguments"], ensure_ascii=False)}
    return {"id": str(call.get("id") or ""), "type": "function", "function": function}


def _build_call(call: Any) -> JsonObject:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ExchangeSkippedError("a call has no name")
    return {"name": function["name"], "arguments": parse_arguments(function.get("arguments"))}


def parse_arguments(arguments: Any) -> JsonObject:
    """Return the arguments of a call.

    Args:
        arguments: a JSON object or its text; an empty value stands for no arguments.

    Raises:
        ExchangeSkippedError: the arguments are no JSON object, or their text is nested too deeply.
    """
    try:
        parsed = parse_json_text(arguments or "{}") if isinstance(arguments, str) else arguments or {}
    except InvalidJsonError:
        parsed = None
    if not isinstance(parsed, dict):
        raise ExchangeSkippedError("the arguments of a call are not a JSON object")
    return parsed


def _build_tool(tool: Any) -> JsonObject:
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ExchangeSkippedError("a tool is not a function")
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    definition = {"name": function["name"], "description": function.get("description") or "", "parameters": parameters}
    return {"type": "function", "function": definition}
