"""Conversion of stored requests and answers to the form of chat completions, for exports, pages and search texts."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject, Message

_CONTENT_FIELDS = ("messages", "input", "prompt", "system", "instructions", "tools", "functions")
_CHAT_ROLES = {"developer": "system", "function": "tool"}  # role in the result, by role in the stored message
_BLOCK_TYPES_WITHOUT_TEXT = ("tool_result", "tool_use", "thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class StoredChatRequest:
    """Request in the form of chat completions. A body that cannot be read has no messages.

    Attributes:
        instructions: system text that is not one of the messages, as in Messages and Responses; "" for none.
        messages: the messages, with texts as content; a rendered prompt is one message with the role "prompt".
        tools: the tools, each with `name`, `description` and `parameters`.
        options: the other fields of the body, such as `model` and `temperature`.
    """

    instructions: str
    messages: tuple[Message, ...]
    tools: tuple[JsonObject, ...]
    options: JsonObject

    @property
    def all_messages(self) -> tuple[Message, ...]:
        """The messages, with the instructions as a system message before them."""
        if not self.instructions:
            return self.messages
        return ({"role": "system", "content": self.instructions}, *self.messages)

    def get_option(self, name: str) -> Any:
        """Return the value of one of the options; None if the body does not have it."""
        return self.options.get(name)


def parse_chat_request(body: bytes) -> StoredChatRequest:
    """Parse the body of a request of chat completions, completions, Messages or Responses."""
    return _build_request(_read_object(body))


def parse_chat_answer(body: bytes) -> tuple[Message, ...]:
    """Return the messages of an answer of chat completions or Responses that was not streamed; () for other bodies."""
    return _list_answers(_read_object(body))


def parse_traffic_line(line: bytes) -> tuple[StoredChatRequest, tuple[Message, ...]]:
    """Return the request and the answer of a JSON object `{"request": …, "response": …}`."""
    traffic = _read_object(line)
    return _build_request(get_object(traffic.get("request"))), _list_answers(get_object(traffic.get("response")))


def _read_object(body: bytes) -> JsonObject:
    try:
        return get_object(json.loads(body))
    except (ValueError, RecursionError):
        return {}


def _build_request(request: JsonObject) -> StoredChatRequest:
    tools = [*list_objects(request.get("tools")), *list_objects(request.get("functions"))]
    return StoredChatRequest(
        instructions="\n".join((*_iter_texts(request.get("system")), *_iter_texts(request.get("instructions")))),
        messages=tuple(_iter_messages(request)),
        tools=tuple(map(_read_tool, tools)),
        options={name: value for name, value in request.items() if name not in _CONTENT_FIELDS},
    )


def _list_answers(answer: JsonObject) -> tuple[Message, ...]:
    choices = [message for choice in list_objects(answer.get("choices")) if (message := choice.get("message"))]
    return tuple(_iter_messages({"messages": choices, "input": answer.get("output")}))


def build_chat_call(call_id: object, name: object, arguments: object) -> JsonObject:
    """Return a call of an assistant message. Arguments that are no string are written as JSON; None becomes `{}`."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False, default=str)
    function = {"name": str(name or ""), "arguments": text}
    return {"id": str(call_id or ""), "type": "function", "function": function}


def _iter_messages(request: JsonObject) -> Iterator[Message]:
    """Yield the prompt, the messages and the input items of a request in the form of chat completions."""
    if isinstance(request.get("prompt"), str):
        yield {"role": "prompt", "content": request["prompt"]}
    for message in list_objects(request.get("messages")):
        yield from _split_message(message)
    items = request.get("input")
    if isinstance(items, str):
        yield {"role": "user", "content": items}
    for item in list_objects(items):
        yield from _convert_item(item)


def _split_message(message: JsonObject) -> Iterator[Message]:
    """Yield a message for each tool result in the blocks of a message, then one for its text and calls.

    The message for text and calls is omitted if it would be empty and a block has one of the _BLOCK_TYPES_WITHOUT_TEXT.
    """
    role = str(message.get("role") or "")
    content = message.get("content")
    blocks = list_objects(content)
    for block in blocks:
        if block.get("type") == "tool_result":
            yield _build_result(block.get("tool_use_id"), block.get("content"))
    text_blocks = [block for block in blocks if block.get("type") not in _BLOCK_TYPES_WITHOUT_TEXT]
    chat_message: Message = {
        "role": _CHAT_ROLES.get(role, role),
        "content": "\n".join(_iter_texts(text_blocks if blocks else content)),
    }
    calls = list(_iter_calls(message, blocks))
    if calls:
        chat_message["tool_calls"] = calls
    if chat_message["role"] == "tool":
        chat_message["tool_call_id"] = str(message.get("tool_call_id") or "")
    if calls or chat_message["content"] or len(text_blocks) == len(blocks):
        yield chat_message


def _iter_calls(message: JsonObject, blocks: list[JsonObject]) -> Iterator[JsonObject]:
    for call in list_objects(message.get("tool_calls")):
        function = get_object(call.get("function"))
        yield build_chat_call(call.get("id"), function.get("name"), function.get("arguments"))
    for block in blocks:
        if block.get("type") == "tool_use":
            yield build_chat_call(block.get("id"), block.get("name"), block.get("input"))


def _convert_item(item: JsonObject) -> Iterator[Message]:
    """Yield the messages of an item of a Responses request or answer; items such as reasoning have none."""
    kind = item.get("type", "message")
    if kind == "function_call":
        call = build_chat_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        yield {"role": "assistant", "content": "", "tool_calls": [call]}
    elif kind == "function_call_output":
        yield _build_result(item.get("call_id"), item.get("output"))
    elif kind == "message":
        yield from _split_message(item)


def _build_result(call_id: object, content: object) -> Message:
    return {"role": "tool", "content": "\n".join(_iter_texts(content)), "tool_call_id": str(call_id or "")}


def _read_tool(tool: JsonObject) -> JsonObject:
    definition = get_object(tool.get("function")) or tool
    parameters = definition.get("parameters") or definition.get("input_schema")
    return {
        "name": str(definition.get("name") or ""),
        "description": str(definition.get("description") or ""),
        "parameters": get_object(parameters),
    }


def _iter_texts(content: object) -> Iterator[str]:
    """Yield the content if it is a string, else the texts of its parts."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        text = part if isinstance(part, str) else get_object(part).get("text")
        if isinstance(text, str):
            yield text


def list_objects(value: object) -> list[JsonObject]:
    """Return the objects in a JSON array; an empty list if the value is no array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
