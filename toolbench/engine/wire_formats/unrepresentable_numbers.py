"""Reading of answers with unrepresentable numbers.

An unrepresentable number is not JSON (NaN, Infinity) or is too large for Python (1e400, more than 4,300 digits). In a
field of statistics (usage, timings, creation time), it is read as unknown. Elsewhere, it makes the answer invalid JSON.
"""

import json
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import is_too_deep, read_finite, read_json

_STATISTICS_FIELDS = ("usage", "timings", "created", "created_at", "tokens_evaluated", "tokens_predicted")
# Objects that may have fields of statistics: `message` in Messages, `response` in Responses, `x_groq` from Groq.
_STATISTICS_PARENTS = ("message", "response", "x_groq")
NOT_A_NUMBER = "NaN"
_MAX_NUMBER_CHARS = 20  # the text of a number that is too large is truncated to this length


class UnrepresentableNumber(str):
    """Text of an unrepresentable number: NaN, Infinity, -Infinity or the beginning of a number that is too large."""


def _read_integer(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return UnrepresentableNumber(text[:_MAX_NUMBER_CHARS])


def _read_float(text: str) -> float | str:
    try:
        return read_finite(text)
    except ValueError:
        return UnrepresentableNumber(text[:_MAX_NUMBER_CHARS])


_DECODER = json.JSONDecoder(parse_constant=UnrepresentableNumber, parse_int=_read_integer, parse_float=_read_float)


def read_answer_json(text: str) -> Any:
    """Parse the JSON of an answer.

    In an object, unrepresentable numbers in fields of statistics become UnrepresentableNumber.

    Raises:
        InvalidJsonError: the text is not JSON, is nested too deeply, or has an unrepresentable number elsewhere.
    """
    try:
        return read_json(text)
    except InvalidJsonError as error:
        is_object = error.code == "not_json" and text.lstrip().startswith("{")
        value = _read_unrepresentable_numbers(text) if is_object else None
        if value is None:
            raise
        return value


def _read_unrepresentable_numbers(text: str) -> dict[str, Any] | None:
    """Return the object in a text, with unrepresentable numbers in its statistics.

    The result is None if the text is no object, is nested too deeply, or has such a number elsewhere.
    """
    try:
        root = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(root, dict) or is_too_deep(root):
        return None
    return None if _has_unrepresentable_number(_remove_statistics(root)) else root


def _remove_statistics(root: dict[str, Any]) -> dict[str, Any]:
    """Return the answer without its fields of statistics and without those of the objects in _STATISTICS_PARENTS."""
    other_fields = {name: value for name, value in root.items() if name not in _STATISTICS_FIELDS}
    for name in _STATISTICS_PARENTS:
        if isinstance(parent := other_fields.get(name), dict):
            other_fields[name] = {key: value for key, value in parent.items() if key not in _STATISTICS_FIELDS}
    return other_fields


def _has_unrepresentable_number(value: Any) -> bool:
    """Return whether there is an unrepresentable number at any level of a value."""
    if isinstance(value, dict):
        return any(map(_has_unrepresentable_number, value.values()))
    if isinstance(value, list):
        return any(map(_has_unrepresentable_number, value))
    return isinstance(value, UnrepresentableNumber)
