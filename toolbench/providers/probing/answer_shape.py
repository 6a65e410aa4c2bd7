"""Shape of calls, ids and reasoning, read from the bytes of an answer before any normalisation."""

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
LEGACY_FIELD, SINGLE_OBJECT, CALL_LIST = "function_call", "object", "list"
_ARGUMENT_FAULTS = ("unreadable", "twice_encoded", "object", "blank")  # most severe first


def parse_raw_message(step: ExchangeStep) -> Message:
    """Return the first choice's message as it came; {} where the body has none.

    An answer in the format of Anthropic's Messages or of Responses is converted to the equivalent chat message.
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
    """Check where calls are and what their arguments look like, over all answers with calls.

    One structured call that came back shows that the endpoint accepts tools, even if an earlier check concluded
    otherwise because it saw no call.
    """
    calling = [(step.ordinal, message) for step in exchanges if _list_calls(message := parse_raw_message(step))]
    numbers = tuple(number for number, _ in calling)
    if not calling:
        return ProbeCheck("shape", "unknown", "Inconclusive: no answer had a call in its own field.")
    places = {_find_place(message) for _, message in calling}
    arguments = {
        _classify_arguments(function.get("arguments"))
        for _, message in calling
        for function in _list_functions(message)
    }
    place = next((odd for odd in (LEGACY_FIELD, SINGLE_OBJECT) if odd in places), CALL_LIST)
    kind = next((fault for fault in _ARGUMENT_FAULTS if fault in arguments), "text")
    learned: JsonObject = {
        "supports_tool_use": True,
        "tools_field": "accepted",
        "calls_shape": place,
        "arguments_shape": kind,
    }
    if place == CALL_LIST and kind == "text":
        description = "Calls are a list and their arguments a JSON text."
        return ProbeCheck("shape", "passed", description, learned, numbers)
    description = f"Calls stand in {_PLACE_TEXTS[place]}; their arguments are {_ARGUMENT_TEXTS[kind]}."
    return ProbeCheck("shape", "failed", description, learned, numbers)


_PLACE_TEXTS = {
    CALL_LIST: "a list",
    SINGLE_OBJECT: "one object instead of a list",
    LEGACY_FIELD: "the old field function_call",
}
_ARGUMENT_TEXTS = {
    "text": "a JSON text",
    "object": "an object instead of a text",
    "blank": "blank instead of an empty object",
    "twice_encoded": "encoded twice",
    "unreadable": "no readable JSON",
}


def check_ids(exchanges: Iterable[ExchangeStep]) -> ProbeCheck:
    """Check whether the ids of calls are present and distinct, over all answers with calls."""
    found = [(step.ordinal, call.get("id")) for step in exchanges for call in _list_calls(parse_raw_message(step))]
    ids = [call_id for _, call_id in found]
    numbers = tuple(dict.fromkeys(number for number, _ in found))
    if not ids:
        return ProbeCheck("ids", "unknown", "Inconclusive: no answer had a call in its own field.")
    if any(not isinstance(call_id, str) or not call_id.strip() for call_id in ids):
        return ProbeCheck("ids", "failed", "Calls have no id; they are given one.", {"ids": "missing"}, numbers)
    if len(set(ids)) < len(ids):
        return ProbeCheck("ids", "failed", "Different calls share an id.", {"ids": "repeated"}, numbers)
    if len(ids) == 1:
        return ProbeCheck(
            "ids", "unknown", "The one call had an id; whether two differ could not be told.", {}, numbers
        )
    return ProbeCheck("ids", "passed", f"{len(ids)} calls, {len(ids)} ids.", {"ids": "unique"}, numbers)


def find_reasoning_field(message: Message) -> str:
    """Return where the message's reasoning is: a field's name, `tags`, or "" for none."""
    found = next((name for name in REASONING_FIELDS if message.get(name)), "")
    content = message.get("content")
    return found or ("tags" if isinstance(content, str) and "<think>" in content else "")


def _list_calls(message: Message) -> list[JsonObject]:
    calls = message.get("tool_calls")
    listed = [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else []
    legacy = message.get("function_call")
    if not listed and isinstance(legacy, dict):
        return [{"id": "legacy", "function": legacy}]
    return [call for call in listed if isinstance(call, dict)]


def _find_place(message: Message) -> str:
    if isinstance(message.get("tool_calls"), dict):
        return SINGLE_OBJECT
    return CALL_LIST if message.get("tool_calls") else LEGACY_FIELD


def _list_functions(message: Message) -> list[JsonObject]:
    functions = (call.get("function") for call in _list_calls(message))
    return [function for function in functions if isinstance(function, dict)]


def _classify_arguments(arguments: Any) -> str:
    if isinstance(arguments, dict | list):
        return "object"
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return "blank"
    value = parse_json(arguments) if isinstance(arguments, str) else None
    if isinstance(value, dict):
        return "text"
    return "twice_encoded" if isinstance(value, str) and isinstance(parse_json(value), dict) else "unreadable"
