"""Repairs of what surrounds an object: additional encodings, quotes, repetitions and prose.

Each public function is a repair and has the name of the repair in the policy.
"""

import json
import re

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.repairs.tokens import find_objects
from toolbench.engine.strict_json import read_json

_LENIENT_DECODER = json.JSONDecoder(strict=False)
_ESCAPED_START = re.compile(r"\{(?:\s|\\[nrt])*\\+\"")
_ONLY_QUOTES = re.compile(r"[\s\"'`“”‘’]*")
_ONLY_CLOSING_BRACKETS = re.compile(r"[\s}\]]*")
_MAX_ENCODING_LEVELS = 4


def nested_encoding(text: str) -> str:
    """Decode an object that was encoded as a JSON string, at most four times."""
    for _ in range(_MAX_ENCODING_LEVELS):
        try:
            value = read_json(text)
        except InvalidJsonError:
            return text
        if not isinstance(value, str):
            return text
        text = value.strip()
    return text


def escaped_object(text: str) -> str:
    """Remove one level of escapes from an object whose quotes are all escaped."""
    if not _ESCAPED_START.match(text):
        return text
    try:
        value = _LENIENT_DECODER.decode(f'"{text}"')
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def stray_quotes(text: str) -> str:
    """Remove quotes and backticks before and after the only object."""
    object_texts, outside_text = find_objects(text)
    return object_texts[0] if len(object_texts) == 1 and outside_text and _ONLY_QUOTES.fullmatch(outside_text) else text


def doubled_object(text: str) -> str:
    """Keep one of several equal objects that follow one another; empty objects beside them are removed."""
    object_texts, outside_text = find_objects(text)
    distinct_texts = list(dict.fromkeys(object_texts))
    non_empty_texts = [text for text in distinct_texts if text.strip("{} \t\r\n")] or distinct_texts
    return (
        non_empty_texts[0] if len(object_texts) > 1 and len(non_empty_texts) == 1 and not outside_text.strip() else text
    )


def extra_closers(text: str) -> str:
    """Remove additional closing brackets before and after the only object."""
    object_texts, outside_text = find_objects(text)
    return (
        object_texts[0]
        if len(object_texts) == 1 and outside_text.strip() and _ONLY_CLOSING_BRACKETS.fullmatch(outside_text)
        else text
    )


def text_around_object(text: str) -> str:
    """Remove prose before and after the only object."""
    object_texts, outside_text = find_objects(text)
    return object_texts[0] if len(object_texts) == 1 and outside_text.strip() and "{" not in outside_text else text
