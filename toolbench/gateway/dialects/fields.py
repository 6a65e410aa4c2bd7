"""Checks of request bodies that several dialects share."""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from toolbench.engine.types import JsonObject, Message
from toolbench.gateway.request import refuse

MAX_MODEL_CHARS = 100


def check_object(body: Any) -> JsonObject:
    """Return the body if it is an object.

    Raises:
        GatewayError: it is none.
    """
    if not isinstance(body, dict):
        raise refuse("The body is no JSON object. Send an object with model and messages.")
    return body


def check_known_fields(body: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse fields that nothing reads, so that no parameter is lost without a word.

    Raises:
        GatewayError: there is such a field.
    """
    unknown = sorted(str(name)[:40] for name in body if name not in known)
    if unknown:
        raise refuse(f"The gateway has no field {', '.join(unknown[:5])}. Leave it out.")


def read_model(body: Mapping[str, Any]) -> str:
    """Return the name of the alias.

    Raises:
        GatewayError: it is missing or no text.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model or len(model) > MAX_MODEL_CHARS:
        raise refuse("model is the name of an alias, as GET /v1/models lists them.")
    return model


def read_flag(body: Mapping[str, Any], name: str) -> bool:
    """Return a true or false field; False where it is missing or null.

    Raises:
        GatewayError: it is something else.
    """
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise refuse(f"{name} is true or false.")
    return value


def render_schema(name: str, schema: Any) -> str:
    """Return the JSON of a tool's schema; a missing one stands for no parameters.

    Raises:
        GatewayError: it is no object.
    """
    if schema is None:
        schema = {"type": "object", "properties": {}}
    if not isinstance(schema, dict):
        raise refuse(f"Tool {name[:64]}: its parameters are no JSON Schema, which is an object.")
    return json.dumps(schema)


def check_conversation(messages: Iterable[Message]) -> None:
    """Check that each result of a tool follows its call, and that the conversation ends with a user or a tool.

    Raises:
        GatewayError: it does not.
    """
    open_calls: set[str] = set()
    last = ""
    for number, message in enumerate(messages):
        last = message["role"]
        if last == "assistant":
            open_calls = {str(call["id"]) for call in message.get("tool_calls", ())}
        elif last == "tool":
            if message["tool_call_id"] not in open_calls:
                raise refuse(
                    f"Message {number} is the result of a call that the assistant's message before it does not have. "
                    "Send the call with the same id before its result."
                )
            open_calls.discard(message["tool_call_id"])
        elif last == "user" and open_calls:
            raise refuse(f"Before message {number}, {len(open_calls)} calls have no result. Send a result for each.")
    if last not in ("user", "tool"):
        raise refuse("The conversation ends with the assistant. End it with a user's message or a tool's result.")
    if open_calls:
        raise refuse(f"{len(open_calls)} calls have no result. Send a result for each.")


def render_event(data: JsonObject, *, name: str = "") -> bytes:
    """Return a server-sent event; `name` is its type, or empty for none."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
