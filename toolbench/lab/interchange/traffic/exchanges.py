"""Recorded exchanges of other programs: what was asked with which tools, and which calls the model made."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbench.engine.types import JsonObject, Message

_TEXT_PARTS = ("text", "input_text", "output_text")
_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class ExchangeSkippedError(Exception):
    """Record from which no case can be made; the text is the reason, the same for all records of one kind."""


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """One request and the calls of its answer.

    Attributes:
        messages: the request's messages in OpenAI's chat form; the last one is the user's.
        tools: the request's tools in OpenAI's chat form.
        calls: calls of the answer, `{name, arguments}`; empty if it was a text.
        model: name of the model that answered, or empty.
    """

    messages: tuple[Message, ...]
    tools: tuple[JsonObject, ...]
    calls: tuple[JsonObject, ...]
    model: str


def build_exchange(messages: Any, tools: Any, answer: Any, model: Any) -> RecordedExchange:
    """Return the exchange of a request and its answer in OpenAI's chat form.

    Args:
        messages: messages of the request.
        tools: tools of the request.
        answer: the assistant's message.
        model: name of the model; anything but a text counts as unknown.

    Raises:
        ExchangeSkippedError: no case can be made of it.
    """
    if not isinstance(messages, list) or not messages:
        raise ExchangeSkippedError("the request has no messages")
    if not isinstance(answer, Mapping):
        raise ExchangeSkippedError("the record has no answer")
    built_tools = tuple(_build_tool(tool) for tool in tools) if isinstance(tools, list) else ()
    if not built_tools:
        raise ExchangeSkippedError("the request has no tools")
    built = tuple(_build_message(message) for message in messages)
    if built[-1]["role"] != "user":
        raise ExchangeSkippedError("the request goes on after a tool's answer, so it belongs to the exchange before it")
    calls = tuple(_build_call(call) for call in _list_calls(answer))
    return RecordedExchange(built, built_tools, calls, model if isinstance(model, str) else "")


def join_text(content: Any) -> str:
    """Return the text of a message's content.

    Args:
        content: a text, a list of parts, or None.

    Raises:
        ExchangeSkippedError: a part is no text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise ExchangeSkippedError("a message has a content that cannot be read")
    return "".join(_read_part(part) for part in content)


def _read_part(part: Any) -> str:
    if isinstance(part, Mapping) and part.get("type") in _TEXT_PARTS and isinstance(part.get("text"), str):
        return str(part["text"])
    raise ExchangeSkippedError("a message has an image, a file or another part that is no text")


def _build_message(message: Any) -> Message:
    role = _ROLES.get(str(message.get("role"))) if isinstance(message, Mapping) else None
    if role is None:
        raise ExchangeSkippedError("a message has no known role")
    built: Message = {"role": role, "content": join_text(message.get("content"))}
    if role == "assistant" and _list_calls(message):
        built["tool_calls"] = [_build_history_call(call) for call in _list_calls(message)]
    if role == "tool":
        built["tool_call_id"] = str(message.get("tool_call_id") or "")
    return built


def _list_calls(message: Mapping[str, Any]) -> Sequence[Any]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else ()


def _build_history_call(call: Any) -> JsonObject:
    made = _build_call(call)
    function = {"name": made["name"], "arguments": json.dumps(made["arguments"], ensure_ascii=False)}
    return {"id": str(call.get("id") or ""), "type": "function", "function": function}


def _build_call(call: Any) -> JsonObject:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ExchangeSkippedError("a call has no name")
    return {"name": function["name"], "arguments": parse_arguments(function.get("arguments"))}


def parse_arguments(arguments: Any) -> JsonObject:
    """Return the arguments of a call.

    Args:
        arguments: an object, or a text that is JSON of an object; empty for none.

    Raises:
        ExchangeSkippedError: they are neither.
    """
    try:
        parsed = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments or {}
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise ExchangeSkippedError("the arguments of a call are no JSON object")
    return parsed


def _build_tool(tool: Any) -> JsonObject:
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ExchangeSkippedError("a tool is no function")
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    described = {"name": function["name"], "description": function.get("description") or "", "parameters": parameters}
    return {"type": "function", "function": described}
