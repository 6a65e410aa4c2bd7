"""JSON Pointers to values of a simulated state."""

from typing import Any

from jsonpointer import EndOfList, JsonPointer, JsonPointerException

from toolbench.engine.types import JsonObject


def is_pointer(text: str) -> bool:
    """Return whether the text is a JSON Pointer that begins with a slash."""
    try:
        JsonPointer(text)
    except JsonPointerException:
        return False
    return text.startswith("/")


def find_pointer_value(state: JsonObject, pointer: str, default: object = None) -> Any:
    """Return the value at a JSON Pointer; `default` if there is none or the text is no JSON Pointer.

    There is no value at `-`, the place after the last item of an array.
    """
    try:
        value = JsonPointer(pointer).resolve(state, default)
    except (JsonPointerException, TypeError):
        return default
    return default if isinstance(value, EndOfList) else value
