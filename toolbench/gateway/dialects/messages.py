"""Wire format of Anthropic's Messages: requests, answers, errors and streams."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.types import JsonObject, Message, Usage
from toolbench.gateway.dialects.fields import (
    check_conversation,
    check_known_fields,
    check_known_keys,
    check_object,
    check_value,
    read_flag,
    read_model,
    read_options,
    read_text,
    read_tool,
    read_tool_choice,
    render_event,
)
from toolbench.gateway.request import GatewayAnswer, GatewayError, GatewayRequest, GatewayTool, build_registry, refuse

_OPTION_KINDS = {"max_tokens": "positive", "temperature": "number", "top_p": "number", "top_k": "whole"}
_FIELDS = {*_OPTION_KINDS, "model", "messages", "system", "tools", "tool_choice", "stream", "stop_sequences"}
_FIELDS |= {"metadata", "service_tier"}
_STOP_REASONS = {  # by GatewayAnswer.finish
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_TOOL_CHOICES = {"auto": "auto", "any": "required", "none": "none"}  # choice in chat completions, by `type` in Messages
_EXPECTED_CHOICES = "{type: auto}, {type: any}, {type: none}, or {type: tool, name} with the name of a tool"


class MessagesDialect:
    """Wire format of Anthropic's Messages."""

    name = "messages"

    def parse(self, body: Any) -> GatewayRequest:
        """Parse a body; see Dialect."""
        fields = check_object(body)
        check_known_fields(fields, _FIELDS)
        if fields.get("max_tokens") is None:
            raise refuse("max_tokens is required. Send a whole number of at least 1.")
        check_value(fields, "service_tier", ("auto",), "The gateway does not send it to the provider.")
        tools = _parse_tools(fields.get("tools"))
        choice, options = _parse_tool_choice(fields.get("tool_choice"), tools)
        options |= read_options(fields, _OPTION_KINDS) | _convert_options(fields)
        return GatewayRequest(
            alias=read_model(fields),
            messages=_parse_messages(fields.get("system"), fields.get("messages")),
            tools=build_registry(tools),
            tool_choice=choice,
            options=options,
            stream=read_flag(fields, "stream"),
        )

    def render(self, answer: GatewayAnswer, *, with_changes: bool) -> JsonObject:
        """Render an answer; see Dialect."""
        blocks: list[JsonObject] = [{"type": "text", "text": answer.text}] if answer.text else []
        blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.value} for call in answer.calls]
        body = _build_empty_message(answer.id, answer.alias) | {
            "content": blocks,
            "stop_reason": _STOP_REASONS[answer.finish],
            "usage": _render_usage(answer.usage),
        }
        return body | ({"toolbench": answer.render_changes()} if with_changes else {})

    def render_error(self, error: GatewayError) -> JsonObject:
        """Render an error; see Dialect."""
        return {
            "type": "error",
            "error": {"type": _ERROR_TYPES.get(error.status, "api_error"), "message": error.message},
        }

    def start_stream(self, answer_id: str, alias: str) -> Iterator[bytes]:
        """Yield the start of the message; see Dialect."""
        message = _build_empty_message(answer_id, alias)
        yield render_event({"type": "message_start", "message": message}, name="message_start")

    def stream_text(self, answer_id: str, alias: str, text: str, *, is_first: bool) -> Iterator[bytes]:
        """Yield a part of the text; see Dialect."""
        if is_first:
            yield _render_block_start(0, {"type": "text", "text": ""})
        yield _render_block_delta(0, {"type": "text_delta", "text": text})

    def end_stream(
        self, request: GatewayRequest, answer: GatewayAnswer, *, has_text: bool, with_changes: bool
    ) -> Iterator[bytes]:
        """Yield the calls and the end of the message; see Dialect."""
        if has_text:
            yield _render_block_stop(0)
        for index, call in enumerate(answer.calls, start=int(has_text)):
            yield _render_block_start(index, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
            yield _render_block_delta(index, {"type": "input_json_delta", "partial_json": call.arguments})
            yield _render_block_stop(index)
        delta = {"stop_reason": _STOP_REASONS[answer.finish], "stop_sequence": None}
        event = {"type": "message_delta", "delta": delta, "usage": _render_usage(answer.usage)}
        yield render_event(
            event | ({"toolbench": answer.render_changes()} if with_changes else {}), name="message_delta"
        )
        yield render_event({"type": "message_stop"}, name="message_stop")

    def stream_error(self, error: GatewayError) -> Iterator[bytes]:
        """Yield an error; see Dialect."""
        yield render_event(self.render_error(error), name="error")


def _parse_messages(system: Any, value: Any) -> tuple[Message, ...]:
    if not isinstance(value, list) or not value:
        raise refuse("messages is missing or empty. Send a list with at least one message.")
    instructions = read_text("system", system)
    messages: list[Message] = [{"role": "system", "content": instructions}] if instructions else []
    for number, message in enumerate(value):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("user", "assistant"):
            raise refuse(f"Message {number} has no known role. Send user or assistant.")
        check_known_keys(f"Message {number}", message, ("role", "content"))
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list):
            raise refuse(f"Message {number}: content is missing. Send a text or a list of blocks.")
        messages += _parse_user_blocks(number, blocks) if role == "user" else [_parse_assistant_blocks(number, blocks)]
    check_conversation(messages)
    return tuple(messages)


def _parse_user_blocks(number: int, blocks: list[Any]) -> list[Message]:
    """Return a message for each tool result, then one with the user's text, unless an empty text follows results."""
    results: list[Message] = []
    text_blocks = []
    for block in blocks:
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            call_id = block.get("tool_use_id")
            if not isinstance(call_id, str) or not call_id:
                raise refuse(f"Message {number}: a tool_result lacks its tool_use_id. Add it.")
            content = read_text(f"Message {number}", block.get("content"))
            # Chat completions have no field for a tool's failure, so the text says it.
            content = f"Error: {content}" if read_flag(block, "is_error") else content
            results.append({"role": "tool", "tool_call_id": call_id, "content": content})
        else:
            text_blocks.append(block)
    text = read_text(f"Message {number}", text_blocks)
    return [*results, *([{"role": "user", "content": text}] if text or not results else [])]


def _parse_assistant_blocks(number: int, blocks: list[Any]) -> Message:
    """Return the message with its text and calls; blocks of reasoning are left out."""
    calls, text_blocks = [], []
    for block in blocks:
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "tool_use":
            if not isinstance(block.get("id"), str) or not isinstance(block.get("name"), str):
                raise refuse(f"Message {number}: a tool_use lacks its id or name. Send id, name and input.")
            function = {"name": block["name"], "arguments": json.dumps(block.get("input") or {})}
            calls.append({"id": block["id"], "type": "function", "function": function})
        elif kind not in ("thinking", "redacted_thinking"):
            text_blocks.append(block)
    message: Message = {"role": "assistant", "content": read_text(f"Message {number}", text_blocks)}
    return message | ({"tool_calls": calls} if calls else {})


def _parse_tools(value: Any) -> list[GatewayTool]:
    if value is None:
        return []
    tools = []
    for tool in value if isinstance(value, list) else [None]:
        name = tool.get("name") if isinstance(tool, Mapping) else None
        if not isinstance(tool, Mapping) or not isinstance(name, str) or not name.strip() or "input_schema" not in tool:
            raise refuse(
                "tools cannot be read. Send a list of {name, description, input_schema}, without Anthropic's own tools."
            )
        tools.append(read_tool(tool, "input_schema"))
    return tools


def _convert_options(fields: Mapping[str, Any]) -> JsonObject:
    """Return the options that chat completions name otherwise: `user` and `stop`, if they have a value."""
    metadata = read_options(fields, {"metadata": "object"}).get("metadata", {})
    check_known_keys("metadata", metadata, ("user_id",))
    user = read_options(metadata, {"user_id": "text"})
    stop = read_options(fields, {"stop_sequences": "texts"}).get("stop_sequences")
    return {**({"user": user["user_id"]} if user else {}), **({"stop": stop} if stop else {})}


def _parse_tool_choice(value: Any, tools: list[GatewayTool]) -> tuple[RequestChoice, JsonObject]:
    """Return the tool choice, and as options {"parallel_tool_calls": False} if only one call is allowed, else {}."""
    if value is None:
        return "auto", {}
    fields = value if isinstance(value, Mapping) else {}
    kind = str(fields.get("type"))
    options: JsonObject = {"parallel_tool_calls": False} if read_flag(fields, "disable_parallel_tool_use") else {}
    name = fields.get("name") if kind == "tool" else None
    return read_tool_choice(_TOOL_CHOICES.get(kind, ""), name, tools, _EXPECTED_CHOICES), options


def _build_empty_message(answer_id: str, alias: str) -> JsonObject:
    return {
        "id": f"msg_{answer_id}",
        "type": "message",
        "role": "assistant",
        "model": alias,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _render_usage(usage: Usage | None) -> JsonObject:
    """Render the usage. Tokens that were read from a cache are not counted as input tokens, unlike in `Usage`."""
    usage = usage or Usage()
    input_tokens = max(0, (usage.input_tokens or 0) - (usage.cached_tokens or 0))
    rendered = {"input_tokens": input_tokens, "output_tokens": usage.output_tokens or 0}
    return rendered | ({"cache_read_input_tokens": usage.cached_tokens} if usage.cached_tokens is not None else {})


def _render_block_start(index: int, block: JsonObject) -> bytes:
    event = {"type": "content_block_start", "index": index, "content_block": block}
    return render_event(event, name="content_block_start")


def _render_block_delta(index: int, delta: JsonObject) -> bytes:
    event = {"type": "content_block_delta", "index": index, "delta": delta}
    return render_event(event, name="content_block_delta")


def _render_block_stop(index: int) -> bytes:
    return render_event({"type": "content_block_stop", "index": index}, name="content_block_stop")
