"""Answers with numbers that JSON or Python cannot hold: NaN, 1e400, thousands of digits. Where only figures stand, such
a number becomes the text that it is written as; anywhere else the answer is no JSON, as before."""

import json
from collections.abc import Iterator
from typing import Any

from toolbench.engine.errors import BadJson
from toolbench.engine.json_text import is_too_deep, read_finite, read_json

_FIGURES = ("usage", "timings", "created", "tokens_evaluated", "tokens_predicted")
_QUOTED = 20  # characters of such a number that are kept


class _OddNumber(str):
    """A number that JSON or Python cannot hold, as it is written."""


def _whole(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return _OddNumber(text[:_QUOTED])


def _fraction(text: str) -> float | str:
    try:
        return read_finite(text)
    except ValueError:
        return _OddNumber(text[:_QUOTED])


_DECODER = json.JSONDecoder(parse_constant=_OddNumber, parse_int=_whole, parse_float=_fraction)


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
    for holder in _holders(root):
        holder |= {name: _plain(holder[name]) for name in _FIGURES if name in holder}
    return None if _has_odd(root) else root


def _holders(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects that have figures: the answer, and the one that begins a streamed Messages answer."""
    yield root
    if isinstance(root.get("message"), dict):
        yield root["message"]


def _plain(value: Any) -> Any:
    """Return a copy in which odd numbers are plain texts."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, _OddNumber) else value


def _has_odd(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_odd, value.values()))
    if isinstance(value, list):
        return any(map(_has_odd, value))
    return isinstance(value, _OddNumber)
