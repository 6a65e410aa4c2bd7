"""Answers with numbers that JSON or Python cannot hold: NaN, 1e400, thousands of digits. Where only figures stand, such
a number becomes an OddNumber, which counts as unknown; anywhere else the answer is no JSON, as before."""

import json
from typing import Any

from toolbench.engine.errors import BadJson
from toolbench.engine.json_text import is_too_deep, read_finite, read_json

_FIGURES = ("usage", "timings", "created", "tokens_evaluated", "tokens_predicted")
NOT_A_NUMBER = "NaN"
_QUOTED = 20  # characters of such a number that are kept


class OddNumber(str):
    """A number that JSON or Python cannot hold, as it is written: "NaN", or one that is too large."""


def _whole(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return OddNumber(text[:_QUOTED])


def _fraction(text: str) -> float | str:
    try:
        return read_finite(text)
    except ValueError:
        return OddNumber(text[:_QUOTED])


_DECODER = json.JSONDecoder(parse_constant=OddNumber, parse_int=_whole, parse_float=_fraction)


def read_answer_json(text: str) -> Any:
    """Return the JSON value in `text`; its figures may be numbers that JSON cannot hold. Raises BadJson."""
    try:
        return read_json(text)
    except BadJson as error:
        is_object = error.code == "not_json" and text.lstrip().startswith("{")
        value = _with_odd_numbers(text) if is_object else None
        if value is None:
            raise
        return value


def _with_odd_numbers(text: str) -> dict[str, Any] | None:
    """Return the object in `text`; None where it is none, or where such a number is no figure."""
    try:
        root = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(root, dict) or is_too_deep(root):
        return None
    return None if _has_odd(_without_figures(root)) else root


def _without_figures(root: dict[str, Any]) -> dict[str, Any]:
    """Return the answer without its figures, and without those of the object that begins a streamed Messages answer."""
    rest = {name: value for name, value in root.items() if name not in _FIGURES}
    if isinstance(message := rest.get("message"), dict):
        rest["message"] = {name: value for name, value in message.items() if name not in _FIGURES}
    return rest


def _has_odd(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_odd, value.values()))
    if isinstance(value, list):
        return any(map(_has_odd, value))
    return isinstance(value, OddNumber)
