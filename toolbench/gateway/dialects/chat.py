"""Wire format of OpenAI's chat completions: requests, answers, errors and streams."""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolbench.engine.types import JsonObject, Message, TransformChange, Usage
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

_OPTION_KINDS = {  # kinds for `read_options`, by name of the field
    "frequency_penalty": "number",
    "logit_bias": "object",
    "max_completion_tokens": "positive",
    "max_tokens": "positive",
    "metadata": "object",
    "parallel_tool_calls": "flag",
    "presence_penalty": "number",
    "reasoning_effort": "text",
    "response_format": "object",
    "seed": "whole",
    "service_tier": "text",
    "stop": "texts",
    "store": "flag",
    "temperature": "number",
    "top_p": "number",
    "user": "text",
    "verbosity": "text",
}
_FIELDS = {*_OPTION_KINDS, "model", "messages", "tools", "tool_choice", "stream", "stream_options", "n"}
# Fields with the reasoning of earlier answers. The gateway does not send it to the model.
_REASONING_KEYS = ("reasoning", "reasoning_content", "reasoning_details")
_MESSAGE_KEYS = ("role", "name", "content", "tool_calls", "tool_call_id", "refusal", *_REASONING_KEYS)
_CALL_KEYS = ("id", "type", "function", "index")
_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
EXPECTED_OPENAI_CHOICES = "auto, none, required, or an object that names one of the tools"
_ERROR_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit"}


class ChatDialect:
    """Wire format of OpenAI's chat completions."""

    name = "chat"

    def parse(self, body: Any) -> GatewayRequest:
        """Parse a body; see Dialect."""
        fields = check_object(body)
        check_known_fields(fields, _FIELDS)
        check_value(fields, "n", (1,), "The gateway gives one answer to a request.")
        messages = _parse_messages(fields.get("messages"))
        tools = _parse_tools(fields.get("tools"))
        choice = fields.get("tool_choice")
        function = choice.get("function") if isinstance(choice, Mapping) else None
        tool_name = function.get("name") if isinstance(function, Mapping) else None
        stream_options = fields.get("stream_options") or {}
        if not isinstance(stream_options, Mapping):
            raise refuse("stream_options is not an object. Send {include_usage: true} or leave it out.")
        check_known_keys("stream_options", stream_options, ("include_usage",))
        return GatewayRequest(
            alias=read_model(fields),
            messages=messages,
            tools=build_registry(tools),
            tool_choice=read_tool_choice(choice, tool_name, tools, EXPECTED_OPENAI_CHOICES),
            options=read_options(fields, _OPTION_KINDS),
            stream=read_flag(fields, "stream"),
            with_usage=read_flag(stream_options, "include_usage"),
            changes=_list_removed_names(fields["messages"]),
        )

    def render(self, answer: GatewayAnswer, *, with_changes: bool) -> JsonObject:
        """Render an answer; see Dialect."""
        message: JsonObject = {"role": "assistant", "content": answer.text or (None if answer.calls else "")}
        if answer.calls:
            message["tool_calls"] = _render_calls(answer)
        choice = {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}
        body = _build_envelope(answer.id, answer.alias, "chat.completion") | {"choices": [choice]}
        body |= {"usage": _render_usage(answer.usage)} if answer.usage else {}
        return body | ({"toolbench": answer.render_changes()} if with_changes else {})

    def render_error(self, error: GatewayError) -> JsonObject:
        """Render an error; see Dialect."""
        return build_openai_error(error)

    def start_stream(self, answer_id: str, alias: str) -> Iterator[bytes]:
        """Yield the first event; see Dialect."""
        yield _render_delta(answer_id, alias, {"role": "assistant", "content": ""})

    def stream_text(self, answer_id: str, alias: str, text: str, *, is_first: bool) -> Iterator[bytes]:
        """Yield a part of the text; see Dialect."""
        yield _render_delta(answer_id, alias, {"content": text})

    def end_stream(
        self, request: GatewayRequest, answer: GatewayAnswer, *, has_text: bool, with_changes: bool
    ) -> Iterator[bytes]:
        """Yield the calls, the finish reason and the usage; see Dialect."""
        for index, call in enumerate(_render_calls(answer)):
            yield _render_delta(answer.id, answer.alias, {"tool_calls": [{"index": index, **call}]})
        extra: JsonObject = {"toolbench": answer.render_changes()} if with_changes else {}
        yield _render_delta(answer.id, answer.alias, {}, finish=answer.finish, extra=extra)
        if request.with_usage and answer.usage:
            envelope = _build_envelope(answer.id, answer.alias, "chat.completion.chunk")
            yield render_event(envelope | {"choices": [], "usage": _render_usage(answer.usage)})
        yield b"data: [DONE]\n\n"

    def stream_error(self, error: GatewayError) -> Iterator[bytes]:
        """Yield an error; see Dialect."""
        yield render_event(self.render_error(error))


def build_openai_error(error: GatewayError) -> JsonObject:
    """Return the body of an error in OpenAI's form."""
    kind = _ERROR_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    return {"error": {"message": error.message, "type": kind, "param": None, "code": error.code}}


def _parse_messages(value: Any) -> tuple[Message, ...]:
    if not isinstance(value, list) or not value:
        raise refuse("messages is missing or empty. Send a list with at least one message.")
    messages = tuple(_parse_message(number, message) for number, message in enumerate(value))
    check_conversation(messages)
    return messages


def _list_removed_names(messages: Iterable[Mapping[str, Any]]) -> tuple[TransformChange, ...]:
    """Return a change for each message whose field `name`, the name of its author, is not sent to the model.

    Messages of tools are left out: their `name` is the tool's name, and the id of the call identifies the tool, too.
    """
    return tuple(
        TransformChange("message", "message_name_removed", f"messages[{number}].name", str(message["name"])[:200], "")
        for number, message in enumerate(messages)
        if message["role"] != "tool" and message.get("name")
    )


def _parse_message(number: int, message: Any) -> Message:
    role = _ROLES.get(str(message.get("role"))) if isinstance(message, Mapping) else None
    if role is None:
        raise refuse(f"Message {number} has no known role. Send system, developer, user, assistant or tool.")
    check_known_keys(f"Message {number}", message, _MESSAGE_KEYS)
    content = read_text(f"Message {number}", message.get("content"))
    content = content or read_text(f"Message {number}", message.get("refusal"))
    parsed: Message = {"role": role, "content": content}
    if role == "assistant" and message.get("tool_calls"):
        parsed["tool_calls"] = _parse_calls(number, message["tool_calls"])
    if role == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or not call_id:
            raise refuse(f"Message {number} is a tool's result without its tool_call_id. Add it.")
        parsed["tool_call_id"] = call_id
    return parsed


def _parse_calls(number: int, calls: Any) -> list[JsonObject]:
    parsed = []
    for call in calls if isinstance(calls, list) else [None]:
        fields = call if isinstance(call, Mapping) else {}
        function = fields.get("function")
        function = function if isinstance(function, Mapping) else {}
        texts = (fields.get("id"), function.get("name"), function.get("arguments"))
        if not all(isinstance(text, str) for text in texts):
            raise refuse(
                f"Message {number}: a tool call lacks id, function.name or function.arguments. Send all as texts."
            )
        check_known_keys(f"A tool call of message {number}", fields, _CALL_KEYS)
        parsed.append({"id": texts[0], "type": "function", "function": {"name": texts[1], "arguments": texts[2]}})
    return parsed


def _parse_tools(value: Any) -> list[GatewayTool]:
    if value is None:
        return []
    tools = []
    for tool in value if isinstance(value, list) else [None]:
        fields = tool if isinstance(tool, Mapping) and tool.get("type") == "function" else {}
        function = fields.get("function")
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(name, str) or not name.strip():
            raise refuse(
                "tools cannot be read. Send a list of {type: function, function: {name, description, parameters}}."
            )
        check_known_keys(f"Tool {name[:64]}", fields, ("type", "function", "cache_control"))
        tools.append(read_tool(function))
    return tools


def _build_envelope(answer_id: str, alias: str, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{answer_id}", "object": kind, "created": int(time.time()), "model": alias}


def _render_delta(
    answer_id: str, alias: str, delta: JsonObject, *, finish: str | None = None, extra: JsonObject | None = None
) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return render_event(
        _build_envelope(answer_id, alias, "chat.completion.chunk") | {"choices": [choice]} | (extra or {})
    )


def _render_calls(answer: GatewayAnswer) -> list[JsonObject]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.calls
    ]


def _render_usage(usage: Usage) -> JsonObject:
    input_tokens, output_tokens = usage.input_tokens or 0, usage.output_tokens or 0
    details: JsonObject = {}
    if usage.cached_tokens is not None:
        details["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    if usage.reasoning_tokens is not None:
        details["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    totals = {"prompt_tokens": input_tokens, "completion_tokens": output_tokens}
    return totals | {"total_tokens": input_tokens + output_tokens} | details
