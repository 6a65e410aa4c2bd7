"""OpenAI's Responses: requests, answers, errors and streams. Nothing is stored between requests."""

import time
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.types import JsonObject, Message, Usage
from toolbench.gateway.dialects.chat import build_openai_error
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

_OPTION_NAMES = {
    "max_output_tokens": "max_tokens",
    "parallel_tool_calls": "parallel_tool_calls",
    "service_tier": "service_tier",
    "temperature": "temperature",
    "top_p": "top_p",
    "user": "user",
}
_FIELDS = {*_OPTION_NAMES, "model", "input", "instructions", "tools", "tool_choice", "stream", "text", "reasoning"}
_FIELDS |= {"include", "metadata", "previous_response_id", "store", "truncation"}
_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}
_TEXT_PARTS = ("input_text", "output_text", "text")


class ResponsesDialect:
    """OpenAI's Responses. One object answers one request, since it numbers the events of a stream."""

    name = "responses"

    def __init__(self) -> None:
        self._numbers = count()

    def parse(self, body: Any) -> GatewayRequest:
        """Return the request of a body; see Dialect."""
        fields = check_object(body)
        check_known_fields(fields, _FIELDS)
        if fields.get("previous_response_id") is not None:
            raise refuse("The gateway stores no answers, so there is no previous_response_id. Send the whole input.")
        tools = _parse_tools(fields.get("tools"))
        options = {new: fields[old] for old, new in _OPTION_NAMES.items() if fields.get(old) is not None}
        return GatewayRequest(
            alias=read_model(fields),
            messages=_parse_input(fields.get("instructions"), fields.get("input")),
            tools=build_registry(tools),
            tool_choice=_parse_tool_choice(fields.get("tool_choice"), {name for name, _, _ in tools}),
            options=options | _convert_nested_options(fields),
            stream=read_flag(fields, "stream"),
        )

    def render(self, answer: GatewayAnswer, *, explain: bool) -> JsonObject:
        """Return the body of an answer; see Dialect."""
        is_complete = answer.finish != "length"
        body = _build_response(answer.id, answer.alias, "completed" if is_complete else "incomplete") | {
            "incomplete_details": None if is_complete else {"reason": "max_output_tokens"},
            "output": [
                *([_build_message_item(answer.id, answer.text)] if answer.text else []),
                *(_build_call_item(answer.id, at, answer) for at in range(len(answer.calls))),
            ],
            "usage": _render_usage(answer.usage),
        }
        return body | ({"toolbench": answer.explain()} if explain else {})

    def render_error(self, error: GatewayError) -> JsonObject:
        """Return the body of an error; see Dialect."""
        return build_openai_error(error)

    def start_stream(self, answer_id: str, alias: str) -> Iterator[bytes]:
        """Yield the first events; see Dialect."""
        response = _build_response(answer_id, alias, "in_progress")
        yield self._render("response.created", {"response": response})
        yield self._render("response.in_progress", {"response": response})

    def stream_text(self, answer_id: str, alias: str, text: str, *, is_first: bool) -> Iterator[bytes]:
        """Yield a part of the text; see Dialect."""
        if is_first:
            item = _build_message_item(answer_id, "") | {"status": "in_progress", "content": []}
            yield self._render("response.output_item.added", {"output_index": 0, "item": item})
            yield self._render("response.content_part.added", _build_place(answer_id) | {"part": _build_part("")})
        yield self._render("response.output_text.delta", _build_place(answer_id) | {"delta": text, "logprobs": []})

    def end_stream(
        self, request: GatewayRequest, answer: GatewayAnswer, *, has_text: bool, explain: bool
    ) -> Iterator[bytes]:
        """Yield the end of the text, the calls and the end; see Dialect."""
        if has_text:
            yield from self._end_text(answer)
        for at, call in enumerate(answer.calls):
            index, item = at + int(has_text), _build_call_item(answer.id, at, answer)
            place = {"output_index": index, "item_id": item["id"]}
            opened = item | {"status": "in_progress", "arguments": ""}
            yield self._render("response.output_item.added", {"output_index": index, "item": opened})
            yield self._render("response.function_call_arguments.delta", place | {"delta": call.arguments})
            ended = place | {"name": call.name, "arguments": call.arguments}
            yield self._render("response.function_call_arguments.done", ended)
            yield self._render("response.output_item.done", {"output_index": index, "item": item})
        name = "response.incomplete" if answer.finish == "length" else "response.completed"
        yield self._render(name, {"response": self.render(answer, explain=explain)})

    def stream_error(self, error: GatewayError) -> Iterator[bytes]:
        """Yield an error; see Dialect."""
        yield self._render("error", {"code": error.code, "message": error.message, "param": None})

    def _end_text(self, answer: GatewayAnswer) -> Iterator[bytes]:
        place = _build_place(answer.id)
        yield self._render("response.output_text.done", place | {"text": answer.text, "logprobs": []})
        yield self._render("response.content_part.done", place | {"part": _build_part(answer.text)})
        item = _build_message_item(answer.id, answer.text)
        yield self._render("response.output_item.done", {"output_index": 0, "item": item})

    def _render(self, name: str, data: JsonObject) -> bytes:
        return render_event({"type": name, "sequence_number": next(self._numbers), **data}, name=name)


def _parse_input(instructions: Any, value: Any) -> tuple[Message, ...]:
    if instructions is not None and not isinstance(instructions, str):
        raise refuse("instructions is a text.")
    messages: list[Message] = [{"role": "system", "content": instructions}] if instructions else []
    items = [{"role": "user", "content": value}] if isinstance(value, str) else value
    if not isinstance(items, list) or not items:
        raise refuse("input is a text or a list with at least one item.")
    for number, item in enumerate(items):
        _add_item(messages, number, item)
    check_conversation(messages)
    return tuple(messages)


def _add_item(messages: list[Message], number: int, item: Any) -> None:
    """Add an item; a call joins the assistant's message before it."""
    kind = item.get("type", "message") if isinstance(item, Mapping) else None
    if kind == "message":
        messages.append(_parse_message(number, item))
    elif kind == "function_call":
        texts = (item.get("call_id"), item.get("name"), item.get("arguments"))
        if not all(isinstance(text, str) for text in texts):
            raise refuse(f"Item {number}: a function_call has call_id, name and arguments, all texts.")
        call = {"id": texts[0], "type": "function", "function": {"name": texts[1], "arguments": texts[2]}}
        if not messages or messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": ""})
        messages[-1].setdefault("tool_calls", []).append(call)
    elif kind == "function_call_output":
        if not isinstance(item.get("call_id"), str):
            raise refuse(f"Item {number}: a function_call_output has a call_id.")
        text = _read_text(number, item.get("output"))
        messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": text})
    elif kind != "reasoning":
        raise refuse(f"Item {number} is no message, function_call, function_call_output or reasoning.")


def _parse_message(number: int, item: Mapping[str, Any]) -> Message:
    role = _ROLES.get(str(item.get("role")))
    if role is None:
        raise refuse(f"Item {number} has no known role: system, developer, user or assistant.")
    return {"role": role, "content": _read_text(number, item.get("content"))}


def _read_text(number: int, content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [None]
    texts = [
        part.get("text") if isinstance(part, Mapping) and part.get("type") in _TEXT_PARTS else None for part in parts
    ]
    if not all(isinstance(text, str) for text in texts):
        raise refuse(f"Item {number} has a part that is no text. The gateway takes text only, no images or files.")
    return "".join(str(text) for text in texts)


def _parse_tools(value: Any) -> list[tuple[str, str, str]]:
    tools = []
    for tool in [] if value is None else value if isinstance(value, list) else [None]:
        name = tool.get("name") if isinstance(tool, Mapping) and tool.get("type") == "function" else None
        if not isinstance(tool, Mapping) or not isinstance(name, str) or not name.strip():
            raise refuse(
                "tools is a list of {type: function, name, description, parameters}. Hosted tools are not taken."
            )
        description = tool.get("description") or ""
        if not isinstance(description, str):
            raise refuse(f"Tool {name[:64]}: its description is no text.")
        tools.append((name, description, render_schema(name, tool.get("parameters"))))
    return tools


def _parse_tool_choice(value: Any, names: set[str]) -> RequestChoice:
    if value is None or value in ("auto", "none", "required"):
        if value == "required" and not names:
            raise refuse("tool_choice is required, but there are no tools.")
        return value or "auto"
    name = value.get("name") if isinstance(value, Mapping) else None
    if name not in names:
        raise refuse("tool_choice is auto, none, required, or names one of the tools.")
    return {"type": "function", "function": {"name": name}}


def _convert_nested_options(fields: Mapping[str, Any]) -> JsonObject:
    """Return the options that chat completions has at the top."""
    options: JsonObject = {}
    for name in ("text", "reasoning"):
        if not isinstance(fields.get(name) or {}, Mapping):
            raise refuse(f"{name} is an object.")
    text, reasoning = fields.get("text") or {}, fields.get("reasoning") or {}
    if reasoning.get("effort") is not None:
        options["reasoning_effort"] = reasoning["effort"]
    if text.get("verbosity") is not None:
        options["verbosity"] = text["verbosity"]
    form = text.get("format")
    if isinstance(form, Mapping) and form.get("type") == "json_schema":
        schema = {key: value for key, value in form.items() if key != "type"}
        options["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif isinstance(form, Mapping) and form.get("type") == "json_object":
        options["response_format"] = {"type": "json_object"}
    return options


def _build_response(answer_id: str, alias: str, status: str) -> JsonObject:
    return {
        "id": f"resp_{answer_id}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": alias,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _build_place(answer_id: str) -> JsonObject:
    return {"item_id": f"msg_{answer_id}", "output_index": 0, "content_index": 0}


def _build_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _build_message_item(answer_id: str, text: str) -> JsonObject:
    head = {"id": f"msg_{answer_id}", "type": "message", "role": "assistant", "status": "completed"}
    return head | {"content": [_build_part(text)]}


def _build_call_item(answer_id: str, at: int, answer: GatewayAnswer) -> JsonObject:
    call = answer.calls[at]
    return {
        "id": f"fc_{answer_id}_{at}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _render_usage(usage: Usage | None) -> JsonObject:
    known = usage or Usage()
    sent, received = known.input_tokens or 0, known.output_tokens or 0
    return {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": known.cached_tokens or 0},
        "output_tokens": received,
        "output_tokens_details": {"reasoning_tokens": known.reasoning_tokens or 0},
        "total_tokens": sent + received,
    }
