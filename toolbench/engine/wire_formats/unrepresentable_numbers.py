"""Answers with numbers that JSON or Python cannot represent: NaN, 1e400, thousands of digits.

In fields of figures (usage, timings) such a number becomes an UnrepresentableNumber, which counts as unknown. Elsewhere
the answer is not JSON.
"""

import json
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import is_too_deep, read_finite, read_json

_FIGURE_FIELDS = ("usage", "timings", "created", "tokens_evaluated", "tokens_predicted")
NOT_A_NUMBER = "NaN"
_MAX_QUOTED_DIGITS = 20  # leading characters of such a number that are kept


class UnrepresentableNumber(str):
    """A number that JSON or Python cannot represent, as written: "NaN", or one that is too large."""


def _read_integer(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return UnrepresentableNumber(text[:_MAX_QUOTED_DIGITS])


def _read_float(text: str) -> float | str:
    try:
        return read_finite(text)
    except ValueError:
        return UnrepresentableNumber(text[:_MAX_QUOTED_DIGITS])


_DECODER = json.JSONDecoder(parse_constant=UnrepresentableNumber, parse_int=_read_integer, parse_float=_read_float)


def read_answer_json(text: str) -> Any:
    """Return the JSON value of a text, whose figures may be numbers that JSON cannot represent.

    Raises:
        InvalidJsonError: the text is not JSON.
    """
    try:
        return read_json(text)
    except InvalidJsonError as error:
        is_object = error.code == "not_json" and text.lstrip().startswith("{")
        value = _read_with_unrepresentable(text) if is_object else None
        if value is None:
            raise
        return value


def _read_with_unrepresentable(text: str) -> dict[str, Any] | None:
    """Return the object in a text; None if it is not one, or has such a number outside of figures."""
    try:
        root = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(root, dict) or is_too_deep(root):
        return None
    return None if _has_unrepresentable(_remove_figures(root)) else root


def _remove_figures(root: dict[str, Any]) -> dict[str, Any]:
    """Return the answer without its figures, also those in `message` of a streamed Messages answer."""
    other_fields = {name: value for name, value in root.items() if name not in _FIGURE_FIELDS}
    if isinstance(message := other_fields.get("message"), dict):
        other_fields["message"] = {name: value for name, value in message.items() if name not in _FIGURE_FIELDS}
    return other_fields


def _has_unrepresentable(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_unrepresentable, value.values()))
    if isinstance(value, list):
        return any(map(_has_unrepresentable, value))
    return isinstance(value, UnrepresentableNumber)
