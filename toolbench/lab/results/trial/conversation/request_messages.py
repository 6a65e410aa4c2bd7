"""Parsing of the messages and tools of a stored request, in any wire format, for the conversation."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject
from toolbench.lab.results.trial.request_values import iter_content_texts

SYSTEM_ROLES = ("system", "developer")
MAX_MESSAGES = 60


@dataclass(frozen=True, slots=True)
class SentMessage:
    """Message of a request.

    Attributes:
        role: system, user, assistant, tool or prompt; a prompt is a whole conversation as one text.
        calls: its calls, each as the name and the arguments in one text.
    """

    role: str
    text: str
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SentRequest:
    """Messages of a request and names of its tools. Both are empty if the body cannot be read."""

    messages: tuple[SentMessage, ...] = ()
    tools: tuple[str, ...] = ()


def parse_sent_request(body: bytes) -> SentRequest:
    """Parse the first MAX_MESSAGES messages of a request body and the names of its tools."""
    try:
        request = get_object(json.loads(body))
    except (ValueError, RecursionError):
        return SentRequest()
    messages = (message for message in _iter_messages(request) if message.text or message.calls)
    tools = request.get("tools")
    names = (_find_tool_name(get_object(tool)) for tool in (tools if isinstance(tools, list) else ()))
    return SentRequest(tuple(message for message, _ in zip(messages, range(MAX_MESSAGES), strict=False)), tuple(names))


def _iter_messages(request: JsonObject) -> Iterator[SentMessage]:
    if isinstance(request.get("prompt"), str):
        yield SentMessage("prompt", request["prompt"])
    if system := "\n".join(iter_content_texts(request.get("system"))):
        yield SentMessage("system", system)
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        yield from _split_message(get_object(message))


def _split_message(message: JsonObject) -> Iterator[SentMessage]:
    """Yield a message for each tool result in the blocks of a message, then one for its text and calls."""
    role, content = str(message.get("role", "")), message.get("content")
    blocks = [get_object(block) for block in content] if isinstance(content, list) else []
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for result in results:
        yield SentMessage("tool", "\n".join(iter_content_texts(result.get("content"))))
    text_blocks = [block for block in blocks if block.get("type") not in ("tool_result", "tool_use", "thinking")]
    text = "\n".join(iter_content_texts(text_blocks if blocks else content))
    calls = [get_object(get_object(call).get("function")) for call in _get_list(message, "tool_calls")]
    calls += [block for block in blocks if block.get("type") == "tool_use"]
    usual_role = "system" if role in SYSTEM_ROLES else "tool" if role == "function" else role
    yield SentMessage(usual_role, text, tuple(map(_describe_call, calls)))


def _get_list(message: JsonObject, name: str) -> list[Any]:
    value = message.get(name)
    return value if isinstance(value, list) else []


def _describe_call(call: JsonObject) -> str:
    arguments = call.get("arguments", call.get("input"))
    arguments_text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{call.get('name', '')} {arguments_text}"


def _find_tool_name(tool: JsonObject) -> str:
    return str(get_object(tool.get("function")).get("name") or tool.get("name") or "")
