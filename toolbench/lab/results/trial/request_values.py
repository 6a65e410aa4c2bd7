"""Masking of the values in the arguments of a call that its request contains.

Such values differ between instances of one scenario.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

GIVEN_PLACEHOLDER = "‹given›"
GIVEN_ROLES = {"user", "system", "developer", "tool", "function"}
MAX_DEPTH = 40  # levels of nested JSON that are searched
MIN_DIGITS = 3  # of a value without letters; a text may contain a shorter number by chance
ENUM_PATTERN = re.compile(r'"enum"\s*:\s*(\[[^\[\]]*\])')
WORD_PATTERN = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class RequestValues:
    """Values that a request contains.

    Attributes:
        texts: prompts, and texts of users, the system and tools, separated by line feeds.
        words: words of these texts, made of ASCII letters and digits.
        enum_values: enum values of the schemas, which are never masked.
    """

    texts: str
    words: frozenset[str]
    enum_values: frozenset[str]

    @classmethod
    def from_request(cls, body: bytes) -> Self:
        """Return the values of a request body; no texts if the body is not a JSON object."""
        body_text = body.decode("utf-8", "replace")
        try:
            request = json.loads(body_text)
        except (ValueError, RecursionError):
            request = None
        texts = "\n".join(_iter_request_texts(request)) if isinstance(request, dict) else ""
        return cls(texts, frozenset(WORD_PATTERN.findall(texts)), frozenset(_iter_enum_values(body_text, texts)))

    def mask_values(self, value: Any, depth: int = 0) -> Any:
        """Return the value with GIVEN_PLACEHOLDER for each text and number that the request contains.

        Keys of objects, enum values, values below MAX_DEPTH, and values without a letter and with fewer than MIN_DIGITS
        digits are kept.

        Args:
            value: a JSON value.
            depth: number of lists and objects around the value.
        """
        if isinstance(value, dict) and depth < MAX_DEPTH:
            return {key: self.mask_values(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list) and depth < MAX_DEPTH:
            return [self.mask_values(item, depth + 1) for item in value]
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return GIVEN_PLACEHOLDER if self._is_given(str(value)) else value
        return value

    def _is_given(self, value: str) -> bool:
        """Return whether the request contains the value as whole words, as it is or escaped as in JSON."""
        if value in self.enum_values or not _is_distinctive(value):
            return False
        spellings = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        return any(
            self.words.issuperset(WORD_PATTERN.findall(spelling)) and _contains_words(self.texts, spelling)
            for spelling in spellings
        )


def _is_distinctive(value: str) -> bool:
    """Return whether the value has a letter or MIN_DIGITS digits, so that texts rarely contain it by chance."""
    return any(map(str.isalpha, value)) or sum(map(str.isdigit, value)) >= MIN_DIGITS


def _contains_words(texts: str, value: str) -> bool:
    """Return whether the texts contain the value as whole words."""
    start = texts.find(value)
    while start >= 0:
        end = start + len(value)
        if not _is_one_word(texts[start - 1 : start] + value[0]) and not _is_one_word(value[-1] + texts[end : end + 1]):
            return True
        start = texts.find(value, start + 1)
    return False


def _is_one_word(pair: str) -> bool:
    """Return whether two adjacent characters belong to one word.

    Letters without upper and lower case do not, since their scripts may be written without spaces.
    """
    return len(pair) == 2 and all(
        character.isdecimal() or character.islower() or character.isupper() or character == "_" for character in pair
    )


def _iter_request_texts(request: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a request, except messages of the model.

    A rendered prompt is one text, which includes the model's messages of earlier turns.
    """
    for name in ("prompt", "system", "instructions"):
        yield from _iter_content_texts(request.get(name))
    messages = request.get("messages", request.get("input"))
    if isinstance(messages, str):
        yield messages
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") in GIVEN_ROLES:
            yield from _iter_content_texts(message.get("content"))
        elif isinstance(message, dict) and message.get("type") == "function_call_output":
            yield from _iter_content_texts(message.get("output"))


def _iter_content_texts(content: Any, depth: int = 0) -> Iterator[str]:
    """Yield the content if it is a text, or else the texts of its blocks down to MAX_DEPTH.

    Args:
        content: value of a field `content`, `prompt`, `system`, `instructions` or `output`.
        depth: number of lists and objects around the content.
    """
    if isinstance(content, str):
        yield content
    elif isinstance(content, list) and depth < MAX_DEPTH:
        for block in content:
            yield from _iter_content_texts(block, depth + 1)
    elif isinstance(content, dict) and depth < MAX_DEPTH:
        yield from _iter_content_texts(content.get("text"), depth + 1)
        yield from _iter_content_texts(content.get("content"), depth + 1)


def _iter_enum_values(*texts: str) -> Iterator[str]:
    """Yield the values of each enum that the texts contain as JSON, such as `"enum": ["a", "b"]`."""
    for enum_json in chain.from_iterable(map(ENUM_PATTERN.findall, texts)):
        try:
            yield from map(str, json.loads(enum_json))
        except (ValueError, RecursionError):
            continue
