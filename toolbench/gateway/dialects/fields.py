"""Functions that all wire formats share: they read fields of requests and render events."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.types import JsonObject, Message
from toolbench.gateway.request import GatewayError, GatewayTool, refuse

MAX_MODEL_CHARS = 100
_TOOL_HINTS = ("cache_control",)  # fields of a tool that change speed and price, but not the answer
_EMPTY_VALUES: tuple[Any, ...] = (None, [], {}, "")  # a field with such a value has the same effect as a missing field


def check_object(body: Any) -> JsonObject:
    """Return the body if it is an object.

    Raises:
        GatewayError: the body is not an object.
    """
    if not isinstance(body, dict):
        raise refuse("The body is not a JSON object. Send an object with the fields of this address.")
    return body


def check_known_fields(body: Mapping[str, Any], known_names: Collection[str]) -> None:
    """Check that the body has known fields only.

    The gateway refuses an unknown field: if it ignored the field, the client would not notice.

    Raises:
        GatewayError: the body has an unknown field.
    """
    unknown_names = sorted(str(name)[:40] for name in body if name not in known_names)
    if unknown_names:
        raise refuse(f"The gateway has no field {', '.join(unknown_names[:5])}. Leave it out.")


def check_known_keys(place: str, value: Mapping[str, Any], known_names: Collection[str]) -> None:
    """Check that a part of the request has known fields only; unknown fields may have an empty value.

    Args:
        place: name of the part, with which the sentence of the error begins, such as "Message 0".
        value: the part.
        known_names: names of the known fields.

    Raises:
        GatewayError: the part has an unknown field with a value.
    """
    unknown_names = [
        str(name)[:40] for name, item in value.items() if name not in known_names and item not in _EMPTY_VALUES
    ]
    if unknown_names:
        raise refuse(
            f"{place} has the field {', '.join(sorted(unknown_names)[:5])}, which has no effect. Leave it out."
        )


def check_value(body: Mapping[str, Any], name: str, allowed: Collection[Any], reason: str) -> None:
    """Check that a field requests only what the gateway does.

    Args:
        body: the body.
        name: name of the field.
        allowed: values that describe what the gateway does; null and a missing field are allowed, too.
        reason: what the gateway does, as a sentence for the error.

    Raises:
        GatewayError: the field has another value.
    """
    value = body.get(name)
    if value is not None and value not in allowed:
        raise refuse(f"{name} has a value that has no effect. {reason} Leave {name} out.")


def read_model(body: Mapping[str, Any]) -> str:
    """Return the name of the requested alias: the value of the field `model`.

    Raises:
        GatewayError: the name is missing, empty, too long or not a text.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model or len(model) > MAX_MODEL_CHARS:
        raise refuse("model is missing or not a name. Send the name of an alias; GET /v1/models lists them.")
    return model


def read_flag(body: Mapping[str, Any], name: str) -> bool:
    """Return the value of a true-or-false field; False if it is missing or null.

    Raises:
        GatewayError: the field has another value.
    """
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise refuse(f"{name} has another value than true or false. Send one of them.")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_OPTION_CHECKS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {  # description and test of valid values, by kind
    "flag": ("true or false", lambda value: isinstance(value, bool)),
    "number": ("a number", _is_number),
    "whole": ("a whole number", _is_whole),
    "positive": ("a whole number of at least 1", lambda value: _is_whole(value) and value >= 1),
    "text": ("a text", lambda value: isinstance(value, str)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "texts": (
        "a text or a list of texts",
        lambda value: (
            isinstance(value, str) or (isinstance(value, list) and all(isinstance(text, str) for text in value))
        ),
    ),
}


def read_options(body: Mapping[str, Any], kinds: Mapping[str, str]) -> JsonObject:
    """Return the fields named in `kinds` with their values; null and missing fields are left out.

    Args:
        body: the body, or an object within it.
        kinds: kind of value (a key of _OPTION_CHECKS), by name of the field.

    Raises:
        GatewayError: a field has a value of another kind.
    """
    options = {name: body[name] for name in kinds if body.get(name) is not None}
    for name, value in options.items():
        expected, is_valid = _OPTION_CHECKS[kinds[name]]
        if not is_valid(value):
            raise refuse(f"{name} is not {expected}. Send {expected} or leave it out.")
    return options


def read_text(place: str, content: Any, part_types: Collection[str] = ("text",)) -> str:
    """Return the text of a message: a string, or a list of parts whose texts are joined.

    Args:
        place: name of the message, with which the sentence of the error begins, such as "Message 0".
        content: value of the field; None stands for an empty text.
        part_types: types of parts that hold text.

    Raises:
        GatewayError: a part or the whole content is not text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [None]
    texts = [
        part.get("text") if isinstance(part, Mapping) and part.get("type") in part_types else None for part in parts
    ]
    if not all(isinstance(text, str) for text in texts):
        raise refuse(f"{place} has a part that is not text. Send text only: the gateway takes no images or files.")
    return "".join(str(text) for text in texts)


def read_tool(fields: Mapping[str, Any], schema_name: str = "parameters") -> GatewayTool:
    """Return a tool; a missing schema stands for no parameters.

    Args:
        fields: the fields of the tool; `name` is a text. `strict` has no effect, since all calls are checked.
        schema_name: name of the field with the schema.

    Raises:
        GatewayError: a field is not known or not valid.
    """
    name, description, schema = str(fields["name"]), fields.get("description"), fields.get(schema_name)
    check_known_keys(f"Tool {name[:64]}", fields, ("type", "name", "description", schema_name, "strict", *_TOOL_HINTS))
    if not isinstance(fields.get("strict") or False, bool):
        raise refuse(f"Tool {name[:64]}: strict is not true or false. Send one of them or leave it out.")
    if description is not None and not isinstance(description, str):
        raise refuse(f"Tool {name[:64]}: its description is not a text. Send a text or leave it out.")
    if schema is None:
        schema = {"type": "object", "properties": {}}
    if not isinstance(schema, dict):
        raise refuse(f"Tool {name[:64]}: its parameters are not a JSON Schema. Send an object.")
    return GatewayTool(name, description or "", json.dumps(schema))


def read_tool_choice(value: Any, name: Any, tools: Iterable[GatewayTool], expected: str) -> RequestChoice:
    """Return the tool choice in the form of chat completions.

    Args:
        value: the choice in the words of chat completions; None stands for `auto`.
        name: name of the tool that the choice requires; None if it names no tool.
        tools: tools of the request.
        expected: the choices that the wire format allows, for the sentence of the error.

    Raises:
        GatewayError: the choice is unknown, names an unknown tool, or requires a call although there are no tools.
    """
    tool_names = [tool.name for tool in tools]
    if value == "required" and not tool_names:
        raise refuse("tool_choice requires a call, but there are no tools. Send tools or leave tool_choice out.")
    if value is None or value in ("auto", "none", "required"):
        return value or "auto"
    if name not in tool_names:
        raise refuse(f"tool_choice is unknown. Send {expected}.")
    return {"type": "function", "function": {"name": name}}


def check_conversation(messages: Iterable[Message]) -> None:
    """Check that every call is followed by its result, and that the last message is a user's or a tool's.

    Raises:
        GatewayError: a result has no call, a call has no result, or the last message is neither a user's nor a tool's.
    """
    open_call_ids: set[str] = set()
    last_role = ""
    for number, message in enumerate(messages):
        last_role = message["role"]
        if last_role in ("user", "assistant") and open_call_ids:
            raise _refuse_open_calls(f"Before message {number}", open_call_ids)
        if last_role == "assistant":
            open_call_ids = {str(call["id"]) for call in message.get("tool_calls", ())}
        elif last_role == "tool":
            if message["tool_call_id"] not in open_call_ids:
                raise refuse(
                    f"Message {number} is the result of a call that the assistant's message before it does not have, "
                    "or that has a result already. Send one result for each call, after the call and with its id."
                )
            open_call_ids.discard(message["tool_call_id"])
    if last_role not in ("user", "tool"):
        raise refuse(
            f"The conversation ends with the {last_role}'s message. End it with a user's message or a tool's result."
        )
    if open_call_ids:
        raise _refuse_open_calls("At the end of the conversation", open_call_ids)


def _refuse_open_calls(place: str, call_ids: Iterable[str]) -> GatewayError:
    """Return the error for calls without a result; the sentence of the error begins with `place`."""
    names = ", ".join(sorted(call_id[:40] for call_id in call_ids)[:5])
    return refuse(f"{place}, results of these calls are missing: {names}. Send a result for each call.")


def render_event(data: JsonObject, *, name: str = "") -> bytes:
    """Return the bytes of a server-sent event with JSON data; `name` is the event type, "" for none."""
    event_line = f"event: {name}\n" if name else ""
    return f"{event_line}data: {json.dumps(data)}\n\n".encode()
