"""OpenAI's chat completions: requests, answers, errors and streams."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.types import JsonObject, Message, Usage
from toolbench.gateway.dialects.fields import (
    check_conversation,
    check_known_fields,
    check_object,
    read_flag,
    read_model,
    render_event,
    render_schema,
)
from toolbench.gateway.request import GatewayAnswer, GatewayError, GatewayRequest, build_registry, refuse

OPTIONS = frozenset(
    [
        "frequency_penalty",
        "logit_bias",
        "max_completion_tokens",
        "max_tokens",
        "metadata",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "service_tier",
        "stop",
        "store",
        "temperature",
        "top_p",
        "user",
        "verbosity",
    ]
)
_FIELDS = OPTIONS | {"model", "messages", "tools", "tool_choice", "stream", "stream_options", "n"}
_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_ERROR_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit"}


class ChatDialect:
    """OpenAI's chat completions."""

    name = "chat"

    def parse(self, body: Any) -> GatewayRequest:
        """Return the request of a body; see Dialect."""
        fields = check_object(body)
        check_known_fields(fields, _FIELDS)
        if fields.get("n") not in (None, 1):
            raise refuse("n is 1: the gateway gives one answer to a request.")
        messages = _parse_messages(fields.get("messages"))
        tools = _parse_tools(fields.get("tools"))
        stream_options = fields.get("stream_options") or {}
        return GatewayRequest(
            alias=read_model(fields),
            messages=messages,
            tools=build_registry(tools),
            tool_choice=_parse_tool_choice(fields.get("tool_choice"), {name for name, _, _ in tools}),
            options={name: fields[name] for name in OPTIONS & fields.keys() if fields[name] is not None},
            stream=read_flag(fields, "stream"),
            with_usage=isinstance(stream_options, Mapping) and bool(stream_options.get("include_usage")),
        )

    def render(self, answer: GatewayAnswer, *, explain: bool) -> JsonObject:
        """Return the body of an answer; see Dialect."""
        message: JsonObject = {"role": "assistant", "content": answer.text or (None if answer.calls else "")}
        if answer.calls:
            message["tool_calls"] = _render_calls(answer)
        choice = {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}
        body = _build_head(answer.id, answer.alias, "chat.completion") | {"choices": [choice]}
        body |= {"usage": _render_usage(answer.usage)} if answer.usage else {}
        return body | ({"toolbench": answer.explain()} if explain else {})

    def render_error(self, error: GatewayError) -> JsonObject:
        """Return the body of an error; see Dialect."""
        return build_openai_error(error)

    def start_stream(self, answer_id: str, alias: str) -> Iterator[bytes]:
        """Yield the first event; see Dialect."""
        yield _render_delta(answer_id, alias, {"role": "assistant", "content": ""})

    def stream_text(self, answer_id: str, alias: str, text: str, *, is_first: bool) -> Iterator[bytes]:
        """Yield a part of the text; see Dialect."""
        yield _render_delta(answer_id, alias, {"content": text})

    def end_stream(
        self, request: GatewayRequest, answer: GatewayAnswer, *, has_text: bool, explain: bool
    ) -> Iterator[bytes]:
        """Yield the calls and the end; see Dialect."""
        for index, call in enumerate(_render_calls(answer)):
            yield _render_delta(answer.id, answer.alias, {"tool_calls": [{"index": index, **call}]})
        extra: JsonObject = {"toolbench": answer.explain()} if explain else {}
        yield _render_delta(answer.id, answer.alias, {}, finish=answer.finish, extra=extra)
        if request.with_usage and answer.usage:
            head = _build_head(answer.id, answer.alias, "chat.completion.chunk")
            yield render_event(head | {"choices": [], "usage": _render_usage(answer.usage)})
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
        raise refuse("messages is a list with at least one message.")
    messages = tuple(_parse_message(number, message) for number, message in enumerate(value))
    check_conversation(messages)
    return messages


def _parse_message(number: int, message: Any) -> Message:
    role = _ROLES.get(str(message.get("role"))) if isinstance(message, Mapping) else None
    if role is None:
        raise refuse(f"Message {number} has no known role: system, developer, user, assistant or tool.")
    parsed: Message = {"role": role, "content": _read_text(number, message.get("content"))}
    if role == "assistant" and message.get("tool_calls"):
        parsed["tool_calls"] = _parse_calls(number, message["tool_calls"])
    if role == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or not call_id:
            raise refuse(f"Message {number} is a tool's result without tool_call_id.")
        parsed["tool_call_id"] = call_id
    return parsed


def _read_text(number: int, content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise refuse(f"Message {number} has a part that is no text. The gateway takes text only, no images or files.")
    return "".join(str(text) for text in texts)


def _parse_calls(number: int, calls: Any) -> list[JsonObject]:
    parsed = []
    for call in calls if isinstance(calls, list) else [None]:
        fields = call if isinstance(call, Mapping) else {}
        function = fields.get("function")
        function = function if isinstance(function, Mapping) else {}
        texts = (fields.get("id"), function.get("name"), function.get("arguments"))
        if not all(isinstance(text, str) for text in texts):
            raise refuse(f"Message {number}: a tool call has id, function.name and function.arguments, all texts.")
        parsed.append({"id": texts[0], "type": "function", "function": {"name": texts[1], "arguments": texts[2]}})
    return parsed


def _parse_tools(value: Any) -> list[tuple[str, str, str]]:
    if value is None:
        return []
    tools = []
    for tool in value if isinstance(value, list) else [None]:
        function = tool.get("function") if isinstance(tool, Mapping) and tool.get("type") == "function" else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(name, str) or not name.strip():
            raise refuse("tools is a list of {type: function, function: {name, description, parameters}}.")
        description = function.get("description") or ""
        if not isinstance(description, str):
            raise refuse(f"Tool {name[:64]}: its description is no text.")
        tools.append((name, description, render_schema(name, function.get("parameters"))))
    return tools


def _parse_tool_choice(value: Any, names: set[str]) -> RequestChoice:
    if value is None or value in ("auto", "none", "required"):
        if value == "required" and not names:
            raise refuse("tool_choice is required, but there are no tools.")
        return value or "auto"
    function = value.get("function") if isinstance(value, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if name not in names:
        raise refuse("tool_choice is auto, none, required, or names one of the tools.")
    return {"type": "function", "function": {"name": name}}


def _build_head(answer_id: str, alias: str, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{answer_id}", "object": kind, "created": int(time.time()), "model": alias}


def _render_delta(
    answer_id: str, alias: str, delta: JsonObject, *, finish: str | None = None, extra: JsonObject | None = None
) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return render_event(_build_head(answer_id, alias, "chat.completion.chunk") | {"choices": [choice]} | (extra or {}))


def _render_calls(answer: GatewayAnswer) -> list[JsonObject]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.calls
    ]


def _render_usage(usage: Usage | None) -> JsonObject:
    known = usage or Usage()
    sent, received = known.input_tokens or 0, known.output_tokens or 0
    details: JsonObject = {}
    if known.cached_tokens is not None:
        details["prompt_tokens_details"] = {"cached_tokens": known.cached_tokens}
    if known.reasoning_tokens is not None:
        details["completion_tokens_details"] = {"reasoning_tokens": known.reasoning_tokens}
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received, **details}
