"""Wire format of OpenAI's Responses, without stored responses: requests, answers, errors and streams."""

import time
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from toolbench.engine.types import JsonObject, Message, Usage
from toolbench.gateway.dialects.chat import EXPECTED_OPENAI_CHOICES, build_openai_error
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

_OPTION_KINDS = {
    "max_output_tokens": "positive",
    "parallel_tool_calls": "flag",
    "service_tier": "text",
    "temperature": "number",
    "top_p": "number",
    "user": "text",
}
_CHAT_NAMES = {"max_output_tokens": "max_tokens"}  # options that chat completions name otherwise
_FIELDS = {*_OPTION_KINDS, "model", "input", "instructions", "tools", "tool_choice", "stream", "text", "reasoning"}
_FIELDS |= {"include", "metadata", "previous_response_id", "store", "truncation"}
_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}
_TEXT_PART_TYPES = ("input_text", "output_text", "text")
_REASONING_INCLUDE = "reasoning.encrypted_content"  # has no effect: no answer of the gateway has items of reasoning


class ResponsesDialect:
    """Wire format of OpenAI's Responses.

    One object serves one request, since it numbers the events of a stream and repeats the metadata of the request.
    """

    name = "responses"

    def __init__(self) -> None:
        self._sequence_numbers = count()
        self._metadata: JsonObject = {}

    def parse(self, body: Any) -> GatewayRequest:
        """Parse a body; see Dialect."""
        fields = check_object(body)
        check_known_fields(fields, _FIELDS)
        if fields.get("previous_response_id") is not None:
            raise refuse("The gateway stores no answers. Send the whole input instead of previous_response_id.")
        check_value(fields, "store", (False,), "The gateway stores no answers.")
        check_value(fields, "truncation", ("disabled",), "The gateway sends the whole input.")
        check_value(fields, "include", ([], [_REASONING_INCLUDE]), "The gateway has no further data about an answer.")
        self._metadata = read_options(fields, {"metadata": "object"}).get("metadata", {})
        tools = _parse_tools(fields.get("tools"))
        options = {_CHAT_NAMES.get(name, name): value for name, value in read_options(fields, _OPTION_KINDS).items()}
        choice = fields.get("tool_choice")
        tool_name = choice.get("name") if isinstance(choice, Mapping) else None
        return GatewayRequest(
            alias=read_model(fields),
            messages=_parse_input(fields.get("instructions"), fields.get("input")),
            tools=build_registry(tools),
            tool_choice=read_tool_choice(choice, tool_name, tools, EXPECTED_OPENAI_CHOICES),
            options=options | _convert_nested_options(fields),
            stream=read_flag(fields, "stream"),
        )

    def render(self, answer: GatewayAnswer, *, with_changes: bool) -> JsonObject:
        """Render an answer; see Dialect."""
        is_complete = answer.finish != "length"
        body = self._build_response(answer.id, answer.alias, "completed" if is_complete else "incomplete") | {
            "incomplete_details": None if is_complete else {"reason": "max_output_tokens"},
            "output": [
                *([_build_message_item(answer.id, answer.text)] if answer.text else []),
                *(_build_call_item(answer, index) for index in range(len(answer.calls))),
            ],
            "usage": _render_usage(answer.usage),
        }
        return body | ({"toolbench": answer.render_changes()} if with_changes else {})

    def render_error(self, error: GatewayError) -> JsonObject:
        """Render an error; see Dialect."""
        return build_openai_error(error)

    def start_stream(self, answer_id: str, alias: str) -> Iterator[bytes]:
        """Yield the first events; see Dialect."""
        response = self._build_response(answer_id, alias, "in_progress")
        yield self._render_event("response.created", {"response": response})
        yield self._render_event("response.in_progress", {"response": response})

    def stream_text(self, answer_id: str, alias: str, text: str, *, is_first: bool) -> Iterator[bytes]:
        """Yield a part of the text; see Dialect."""
        if is_first:
            item = _build_message_item(answer_id, "") | {"status": "in_progress", "content": []}
            yield self._render_event("response.output_item.added", {"output_index": 0, "item": item})
            yield self._render_event(
                "response.content_part.added", _build_text_position(answer_id) | {"part": _build_text_part("")}
            )
        yield self._render_event(
            "response.output_text.delta", _build_text_position(answer_id) | {"delta": text, "logprobs": []}
        )

    def end_stream(
        self, request: GatewayRequest, answer: GatewayAnswer, *, has_text: bool, with_changes: bool
    ) -> Iterator[bytes]:
        """Yield the end of the text, the calls and the whole response; see Dialect."""
        if has_text:
            yield from self._end_text(answer)
        for index, call in enumerate(answer.calls):
            output_index, item = index + int(has_text), _build_call_item(answer, index)
            position = {"output_index": output_index, "item_id": item["id"]}
            empty_item = item | {"status": "in_progress", "arguments": ""}
            yield self._render_event("response.output_item.added", {"output_index": output_index, "item": empty_item})
            yield self._render_event("response.function_call_arguments.delta", position | {"delta": call.arguments})
            arguments = position | {"name": call.name, "arguments": call.arguments}
            yield self._render_event("response.function_call_arguments.done", arguments)
            yield self._render_event("response.output_item.done", {"output_index": output_index, "item": item})
        name = "response.incomplete" if answer.finish == "length" else "response.completed"
        yield self._render_event(name, {"response": self.render(answer, with_changes=with_changes)})

    def stream_error(self, error: GatewayError) -> Iterator[bytes]:
        """Yield an error; see Dialect."""
        yield self._render_event("error", {"code": error.code, "message": error.message, "param": None})

    def _build_response(self, answer_id: str, alias: str, status: str) -> JsonObject:
        return _build_empty_response(answer_id, alias, status) | {"metadata": self._metadata}

    def _end_text(self, answer: GatewayAnswer) -> Iterator[bytes]:
        position = _build_text_position(answer.id)
        yield self._render_event("response.output_text.done", position | {"text": answer.text, "logprobs": []})
        yield self._render_event("response.content_part.done", position | {"part": _build_text_part(answer.text)})
        item = _build_message_item(answer.id, answer.text)
        yield self._render_event("response.output_item.done", {"output_index": 0, "item": item})

    def _render_event(self, name: str, data: JsonObject) -> bytes:
        return render_event({"type": name, "sequence_number": next(self._sequence_numbers), **data}, name=name)


def _parse_input(instructions: Any, value: Any) -> tuple[Message, ...]:
    if instructions is not None and not isinstance(instructions, str):
        raise refuse("instructions is not a text. Send a text or leave it out.")
    messages: list[Message] = [{"role": "system", "content": instructions}] if instructions else []
    items = [{"role": "user", "content": value}] if isinstance(value, str) else value
    if not isinstance(items, list) or not items:
        raise refuse("input is missing or empty. Send a text or a list with at least one item.")
    for number, item in enumerate(items):
        _add_item(messages, number, item)
    check_conversation(messages)
    return tuple(messages)


def _add_item(messages: list[Message], number: int, item: Any) -> None:
    """Add an item to the messages.

    A call is added to the last message if that is the assistant's, else to a new message. Items of reasoning are left
    out.
    """
    kind = item.get("type", "message") if isinstance(item, Mapping) else None
    if kind == "message":
        messages.append(_parse_message(number, item))
    elif kind == "function_call":
        texts = (item.get("call_id"), item.get("name"), item.get("arguments"))
        if not all(isinstance(text, str) for text in texts):
            raise refuse(f"Item {number}: a function_call lacks call_id, name or arguments. Send them as texts.")
        call = {"id": texts[0], "type": "function", "function": {"name": texts[1], "arguments": texts[2]}}
        if not messages or messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": ""})
        messages[-1].setdefault("tool_calls", []).append(call)
    elif kind == "function_call_output":
        if not isinstance(item.get("call_id"), str):
            raise refuse(f"Item {number}: a function_call_output lacks its call_id. Add it.")
        text = read_text(f"Item {number}", item.get("output"), _TEXT_PART_TYPES)
        messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": text})
    elif kind != "reasoning":
        raise refuse(
            f"Item {number} has an unknown type. Send message, function_call, function_call_output or reasoning."
        )


def _parse_message(number: int, item: Mapping[str, Any]) -> Message:
    role = _ROLES.get(str(item.get("role")))
    if role is None:
        raise refuse(f"Item {number} has no known role. Send system, developer, user or assistant.")
    return {"role": role, "content": read_text(f"Item {number}", item.get("content"), _TEXT_PART_TYPES)}


def _parse_tools(value: Any) -> list[GatewayTool]:
    if value is None:
        return []
    tools = []
    for tool in value if isinstance(value, list) else [None]:
        name = tool.get("name") if isinstance(tool, Mapping) and tool.get("type") == "function" else None
        if not isinstance(tool, Mapping) or not isinstance(name, str) or not name.strip():
            raise refuse(
                "tools cannot be read. Send a list of {type: function, name, description, parameters}, "
                "without OpenAI's own tools."
            )
        tools.append(read_tool(tool))
    return tools


def _convert_nested_options(fields: Mapping[str, Any]) -> JsonObject:
    """Return the options within `text` and `reasoning` as the fields that chat completions have for them."""
    options: JsonObject = {}
    for name in ("text", "reasoning"):
        if not isinstance(fields.get(name) or {}, Mapping):
            raise refuse(f"{name} is not an object. Send an object or leave it out.")
    text, reasoning = fields.get("text") or {}, fields.get("reasoning") or {}
    check_known_keys("text", text, ("format", "verbosity"))
    check_known_keys("reasoning", reasoning, ("effort",))
    if effort := read_options(reasoning, {"effort": "text"}):
        options["reasoning_effort"] = effort["effort"]
    options |= read_options(text, {"verbosity": "text"})
    response_format = text.get("format")
    if isinstance(response_format, Mapping) and response_format.get("type") == "json_schema":
        schema = {key: value for key, value in response_format.items() if key != "type"}
        options["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif isinstance(response_format, Mapping) and response_format.get("type") == "json_object":
        options["response_format"] = {"type": "json_object"}
    elif response_format not in (None, {"type": "text"}):
        raise refuse("text.format is unknown. Send {type: text}, {type: json_object} or {type: json_schema, …}.")
    return options


def _build_empty_response(answer_id: str, alias: str, status: str) -> JsonObject:
    return {
        "id": f"resp_{answer_id}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": alias,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _build_text_position(answer_id: str) -> JsonObject:
    return {"item_id": f"msg_{answer_id}", "output_index": 0, "content_index": 0}


def _build_text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _build_message_item(answer_id: str, text: str) -> JsonObject:
    item = {"id": f"msg_{answer_id}", "type": "message", "role": "assistant", "status": "completed"}
    return item | {"content": [_build_text_part(text)]}


def _build_call_item(answer: GatewayAnswer, index: int) -> JsonObject:
    call = answer.calls[index]
    return {
        "id": f"fc_{answer.id}_{index}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _render_usage(usage: Usage | None) -> JsonObject:
    usage = usage or Usage()
    input_tokens, output_tokens = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": input_tokens + output_tokens,
    }
