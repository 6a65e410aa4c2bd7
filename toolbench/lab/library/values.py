"""Parsing, checks, rendering and comparison of JSON values that users enter."""

import json
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import read_json

MAX_TEXT_CHARACTERS = 20_000  # of the JSON in one form field


def parse_value(text: str) -> Any:
    """Parse a JSON value.

    Raises:
        ValueError: the text is not JSON, or a text in the value cannot be stored; the message is for the user.
    """
    try:
        value = read_json(text)
    except InvalidJsonError as error:
        raise ValueError(f"This is not JSON: {error}.") from error
    check_characters(value)
    return value


def check_characters(value: Any) -> None:
    """Check that every text in a value, keys included, can be stored.

    Raises:
        ValueError: a text has a NUL or a lone surrogate; the message is for the user.
    """
    # JSON writes a NUL as `\u0000`, and a backslash as `\\`: without the latter, `\u0000` can only stand for a NUL.
    document = json.dumps(value, ensure_ascii=False).replace(r"\\", "")
    if r"\u0000" in document or any("\ud800" <= character <= "\udfff" for character in document):
        raise ValueError("A text has a character that cannot be stored: NUL or half of a surrogate pair.")


def render_value(value: Any) -> str:
    """Return a value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False)


def render_indented(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def is_same(left: Any, right: Any) -> bool:
    """Return whether two values are equal as JSON: true differs from 1, and the order of keys is ignored."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
