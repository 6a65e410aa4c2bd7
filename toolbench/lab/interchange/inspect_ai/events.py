"""Events and messages of an Inspect AI log, built from the steps of a trial."""

from datetime import datetime, timedelta
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import get_object, read_json
from toolbench.engine.types import JsonObject, Message
from toolbench.lab.interchange.file_json import decode_text, parse_object
from toolbench.lab.traces.chat_requests import StoredChatRequest, build_chat_call, list_objects, parse_chat_request
from toolbench.lab.traces.reading import StepWithDetails

_STOP_REASON_BY_FINISH_REASON = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
# Tool choice in a log by tool choice in a request.
_TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "any", "any": "any"}
# Name in a request, name in the log, and types of the value.
_CONFIG_FIELDS: tuple[tuple[str, str, tuple[type, ...]], ...] = (
    ("temperature", "temperature", (int, float)),
    ("top_p", "top_p", (int, float)),
    ("top_k", "top_k", (int,)),
    ("seed", "seed", (int,)),
    ("max_tokens", "max_tokens", (int,)),
    ("max_completion_tokens", "max_tokens", (int,)),
    ("max_output_tokens", "max_tokens", (int,)),
    ("frequency_penalty", "frequency_penalty", (int, float)),
    ("presence_penalty", "presence_penalty", (int, float)),
    ("parallel_tool_calls", "parallel_tool_calls", (bool,)),
)
# The schema of a tool in a log: keywords that have a text, and types. The raw request has the whole schema.
_SCHEMA_TEXTS = ("format", "description", "pattern")
_SCHEMA_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")


def build_event(step: StepWithDetails, started_at: datetime, model: str) -> JsonObject:
    """Return the event of a step, which is a call of the model or of a tool.

    Args:
        step: the step.
        started_at: start of the trial.
        model: name of the model in the log.
    """
    at = started_at + timedelta(milliseconds=step.started_ms)
    times = {
        "timestamp": at.isoformat(),
        "working_start": step.started_ms / 1000,
        "completed": (at + timedelta(milliseconds=step.duration_ms)).isoformat(),
        "working_time": step.duration_ms / 1000,
    }
    return times | (_build_tool_event(step) if step.is_tool else _build_model_event(step, model))


def build_messages(request: StoredChatRequest) -> list[JsonObject]:
    """Return the messages of a request in the form of a log."""
    return [_build_message(message) for message in request.all_messages]


def build_answer(step: StepWithDetails) -> JsonObject:
    """Return the assistant message of an exchange in the form of a log, with its calls after all repairs."""
    calls = [
        build_chat_call(call.get("id"), call.get("name"), call.get("arguments"))
        for call in list_objects(step.facts.get("calls"))
    ]
    message = _build_message({"role": "assistant", "content": str(step.facts.get("text") or ""), "tool_calls": calls})
    if step.reasoning:
        text = {"type": "text", "text": message["content"]}
        message["content"] = [{"type": "reasoning", "reasoning": step.reasoning}, *([text] if text["text"] else ())]
    return message


def build_result(step: StepWithDetails) -> JsonObject:
    """Return the message with the result of a tool call in the form of a log."""
    call_id = str(get_object(step.facts.get("call")).get("id") or "")
    message = {"role": "tool", "content": decode_text(step.step.body.response), "tool_call_id": call_id}
    return message | {"function": step.step.tool_name, "error": _build_tool_error(step)}


def build_output(step: StepWithDetails) -> JsonObject:
    """Return the output of the model in an exchange; it has no choices if the exchange failed."""
    row = step.step
    stop_reason = _STOP_REASON_BY_FINISH_REASON.get(row.finish_reason, "unknown")
    choice = {"message": build_answer(step), "stop_reason": stop_reason}
    return {
        "model": row.model_echoed,
        "choices": [choice] if row.ok else [],
        "completion": str(step.facts.get("text") or ""),
        "usage": build_usage(get_object(step.facts.get("usage"))),
        "time": step.duration_ms / 1000,
    }


def build_usage(usage: JsonObject) -> JsonObject | None:
    """Return the usage of one or more answers in the form of a log.

    In a log, the input tokens do not include the cached ones.

    Returns:
        The usage; None if input and output tokens are both unknown. If only one of them is known, the other is 0.
    """
    names = ("input", "output", "cached", "reasoning")
    counts = {name: count for name in names if isinstance(count := usage.get(f"{name}_tokens"), int)}
    if not counts.keys() & {"input", "output"}:
        return None
    figures = dict.fromkeys(names, 0) | counts
    return {
        "input_tokens": max(figures["input"] - figures["cached"], 0),
        "output_tokens": figures["output"],
        "total_tokens": figures["input"] + figures["output"],
        "input_tokens_cache_read": figures["cached"],
        "reasoning_tokens": figures["reasoning"],
        "total_cost": usage.get("cost"),
    }


def build_generate_config(options: JsonObject) -> JsonObject:
    """Return the sampling options that a log has a field for, by the names of these fields."""
    return {
        logged_name: options[name]
        for name, logged_name, types in _CONFIG_FIELDS
        if isinstance(options.get(name), types) and (bool in types or not isinstance(options[name], bool))
    }


def _build_model_event(step: StepWithDetails, model: str) -> JsonObject:
    row = step.step
    request = parse_chat_request(bytes(row.body.request))
    call = {
        "request": _parse_body(row.body.request),
        "response": _parse_body(row.body.response),
        "error": not row.ok,
        "time": step.duration_ms / 1000,
    }
    return {
        "event": "model",
        "model": model,
        "input": build_messages(request),
        "tools": [_build_tool(tool) for tool in request.tools],
        "tool_choice": _read_tool_choice(request.get_option("tool_choice")),
        "config": build_generate_config(request.options or {}),
        "output": build_output(step),
        "error": None if row.ok else f"{row.error_code}: {row.error_message}",
        "call": call,
    }


def _build_tool_event(step: StepWithDetails) -> JsonObject:
    call = get_object(step.facts.get("call"))
    arguments, _ = _read_arguments(step.facts.get("arguments") or call.get("arguments"))
    return {
        "event": "tool",
        "type": "function",
        "id": str(call.get("id") or ""),
        "function": step.step.tool_name,
        "arguments": arguments,
        "result": decode_text(step.step.body.response),
        "error": _build_tool_error(step),
    }


def _build_tool_error(step: StepWithDetails) -> JsonObject | None:
    if step.step.ok:
        return None
    is_timeout = step.step.error_code == "TOOL_TIMEOUT"
    kind = "timeout" if is_timeout else "unknown" if step.facts.get("executed") else "parsing"
    return {"type": kind, "message": f"{step.step.error_code}: {step.step.error_message}"}


def _build_message(message: Message) -> JsonObject:
    role = message["role"] if message["role"] in ("system", "user", "assistant", "tool") else "user"
    logged: JsonObject = {"role": role, "content": message["content"]}
    if role == "tool":
        logged["tool_call_id"] = message.get("tool_call_id", "")
    if role == "assistant" and message.get("tool_calls"):
        logged["tool_calls"] = [_build_call(call) for call in message["tool_calls"]]
    return logged


def _build_call(call: JsonObject) -> JsonObject:
    arguments, problem = _read_arguments(call["function"]["arguments"])
    names = {"id": call["id"], "function": call["function"]["name"], "type": "function"}
    return names | {"arguments": arguments, "parse_error": problem}


def _read_arguments(arguments: object) -> tuple[JsonObject, str | None]:
    """Return the arguments as an object, the only form that a log can store.

    Returns:
        A pair: the object, or {} if the arguments are not an object; and the reason why they are not, or None if they
        are an object or empty.
    """
    value = arguments
    if isinstance(arguments, str) and arguments:
        try:
            value = read_json(arguments)
        except InvalidJsonError as error:
            return {}, f"{error}: {arguments[:200]}"
    if isinstance(value, dict) or not value:
        return get_object(value), None
    return {}, f"not an object: {str(value)[:200]}"


def _parse_body(body: bytes | memoryview | None) -> JsonObject:
    """Return the JSON object in a body; any other body, such as a stream, becomes `{"text": …}`."""
    parsed = parse_object(body)
    return {"text": decode_text(body)} if parsed is None else parsed


def _read_tool_choice(choice: object) -> Any:
    if isinstance(choice, dict):
        name = get_object(choice.get("function")).get("name") or choice.get("name")
        return {"name": str(name)} if name else _TOOL_CHOICES.get(str(choice.get("type")), "auto")
    return _TOOL_CHOICES.get(str(choice), "auto")


def _build_tool(tool: JsonObject) -> JsonObject:
    schema = _simplify_schema(tool["parameters"])
    parameters = {name: schema[name] for name in ("properties", "required", "additionalProperties") if name in schema}
    return {"name": tool["name"], "description": tool["description"], "parameters": {"type": "object", **parameters}}


def _simplify_schema(schema: JsonObject) -> JsonObject:
    """Return the part of a JSON Schema that a log can store."""
    simple: JsonObject = {name: schema[name] for name in _SCHEMA_TEXTS if isinstance(schema.get(name), str)}
    types = schema.get("type")
    if types in _SCHEMA_TYPES or (isinstance(types, list) and all(kind in _SCHEMA_TYPES for kind in types)):
        simple["type"] = types
    if isinstance(schema.get("enum"), list):
        simple["enum"] = schema["enum"]
    if isinstance(schema.get("items"), dict):
        simple["items"] = _simplify_schema(schema["items"])
    if isinstance(schema.get("additionalProperties"), bool):
        simple["additionalProperties"] = schema["additionalProperties"]
    if isinstance(schema.get("required"), list) and all(isinstance(name, str) for name in schema["required"]):
        simple["required"] = schema["required"]
    if isinstance(schema.get("anyOf"), list):
        simple["anyOf"] = [_simplify_schema(get_object(part)) for part in schema["anyOf"]]
    if isinstance(schema.get("properties"), dict):
        parts = schema["properties"].items()
        simple["properties"] = {name: _simplify_schema(get_object(part)) for name, part in parts}
    return simple
