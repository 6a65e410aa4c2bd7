"""Checks of the shape of calls, ids and reasoning in answers as the endpoint sent them."""

from collections.abc import Iterable
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject, Message
from toolbench.engine.wire_formats.anthropic.answers import build_chat_message
from toolbench.engine.wire_formats.responses.answers import build_chat_message as build_response_message
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.http.error_body import parse_json
from toolbench.providers.probing.check_result import ProbeCheck

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
LEGACY_FIELD, SINGLE_OBJECT, CALL_LIST = "function_call", "object", "list"  # shapes of calls
_ARGUMENT_FAULTS = ("unreadable", "twice_encoded", "object", "blank")  # most severe first


def parse_raw_message(step: ExchangeStep) -> Message:
    """Return the message of an answer's first choice as it was sent; {} if the body has none.

    An answer of the Messages or the Responses API is converted to the equivalent chat message.
    """
    payload = parse_json(step.response_body)
    if isinstance(payload, dict) and isinstance(payload.get("output"), list):
        return build_response_message(payload["output"])
    if isinstance(payload, dict) and isinstance(payload.get("content"), list):
        return build_chat_message(payload, payload["content"])
    choices = payload.get("choices") if isinstance(payload, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return get_object(message)


def check_shape(exchanges: Iterable[ExchangeStep]) -> ProbeCheck:
    """Check the shapes of calls and of their arguments in all answers with a call in its own field.

    A call in its own field shows that the endpoint accepts tools, also if an earlier check found the opposite because
    it received no call.
    """
    answers = [(step.ordinal, message) for step in exchanges if _list_calls(message := parse_raw_message(step))]
    ordinals = tuple(ordinal for ordinal, _ in answers)
    if not answers:
        return ProbeCheck("shape", "unknown", "Inconclusive: no answer had a call in its own field.")
    calls_shapes = {_find_calls_shape(message) for _, message in answers}
    arguments_shapes = {
        _classify_arguments(function.get("arguments"))
        for _, message in answers
        for function in _list_functions(message)
    }
    calls_shape = next((shape for shape in (LEGACY_FIELD, SINGLE_OBJECT) if shape in calls_shapes), CALL_LIST)
    arguments_shape = next((fault for fault in _ARGUMENT_FAULTS if fault in arguments_shapes), "text")
    learned: JsonObject = {
        "supports_tool_use": True,
        "tools_field": "accepted",
        "calls_shape": calls_shape,
        "arguments_shape": arguments_shape,
    }
    if calls_shape == CALL_LIST and arguments_shape == "text":
        description = "Calls are in a list and their arguments are a JSON text."
        return ProbeCheck("shape", "passed", description, learned, ordinals)
    description = f"Calls are in {_CALLS_TEXTS[calls_shape]}; their arguments are {_ARGUMENT_TEXTS[arguments_shape]}."
    return ProbeCheck("shape", "failed", description, learned, ordinals)


_CALLS_TEXTS = {
    CALL_LIST: "a list",
    SINGLE_OBJECT: "one object instead of a list",
    LEGACY_FIELD: "the old field function_call",
}
_ARGUMENT_TEXTS = {
    "text": "a JSON text",
    "object": "an object instead of a text",
    "blank": "blank instead of an empty object",
    "twice_encoded": "encoded twice",
    "unreadable": "not readable as a JSON object",
}


def check_ids(exchanges: Iterable[ExchangeStep]) -> ProbeCheck:
    """Check whether every call in `tool_calls` of the answers has an id and whether the ids are distinct.

    Calls in the old field function_call are ignored, because they have no ids.
    """
    messages = [(step.ordinal, parse_raw_message(step)) for step in exchanges]
    id_rows = [(ordinal, call.get("id")) for ordinal, message in messages for call in _list_tool_calls(message)]
    ids = [call_id for _, call_id in id_rows]
    ordinals = tuple(dict.fromkeys(ordinal for ordinal, _ in id_rows))
    if not ids:
        return ProbeCheck("ids", "unknown", "Inconclusive: no answer had a call in tool_calls.")
    if any(not isinstance(call_id, str) or not call_id.strip() for call_id in ids):
        return ProbeCheck("ids", "failed", "Calls have no id; Toolbench adds one.", {"ids": "missing"}, ordinals)
    if len(set(ids)) < len(ids):
        return ProbeCheck("ids", "failed", "Different calls share an id.", {"ids": "repeated"}, ordinals)
    if len(ids) == 1:
        description = "Inconclusive: there was only one call, so its id cannot be compared."
        return ProbeCheck("ids", "unknown", description, {}, ordinals)
    return ProbeCheck("ids", "passed", f"{len(ids)} calls have {len(ids)} ids.", {"ids": "unique"}, ordinals)


def find_reasoning_field(message: Message) -> str:
    """Return the field that has the message's reasoning, `tags` for <think> tags, or "" for none."""
    name = next((name for name in REASONING_FIELDS if message.get(name)), "")
    content = message.get("content")
    return name or ("tags" if isinstance(content, str) and "<think>" in content else "")


def _list_calls(message: Message) -> list[JsonObject]:
    """Return the calls in `tool_calls`; without any, the call in the old field function_call."""
    legacy = message.get("function_call")
    return _list_tool_calls(message) or ([{"function": legacy}] if isinstance(legacy, dict) else [])


def _list_tool_calls(message: Message) -> list[JsonObject]:
    """Return the calls in `tool_calls`, which may be a single object in place of a list."""
    calls = message.get("tool_calls")
    listed = [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else []
    return [call for call in listed if isinstance(call, dict)]


def _find_calls_shape(message: Message) -> str:
    if isinstance(message.get("tool_calls"), dict):
        return SINGLE_OBJECT
    return CALL_LIST if message.get("tool_calls") else LEGACY_FIELD


def _list_functions(message: Message) -> list[JsonObject]:
    functions = (call.get("function") for call in _list_calls(message))
    return [function for function in functions if isinstance(function, dict)]


def _classify_arguments(arguments: Any) -> str:
    """Return the shape of a call's arguments: a key of `_ARGUMENT_TEXTS`."""
    if isinstance(arguments, dict | list):
        return "object"
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return "blank"
    value = parse_json(arguments) if isinstance(arguments, str) else None
    if isinstance(value, dict):
        return "text"
    return "twice_encoded" if isinstance(value, str) and isinstance(parse_json(value), dict) else "unreadable"
