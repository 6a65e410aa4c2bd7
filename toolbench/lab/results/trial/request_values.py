"""Argument values of a call that its own request contained, such as those that differ between instances."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

GIVEN_PLACEHOLDER = "‹given›"
GIVEN_ROLES = {"user", "system", "developer", "tool", "function"}
MAX_DEPTH = 40  # levels that are looked through
MIN_DIGITS = 3  # of a value without letters: a shorter one stands in any text by chance
ENUM_PATTERN = re.compile(r'"enum"\s*:\s*(\[[^\[\]]*\])')
WORD_PATTERN = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class RequestValues:
    """Values that a request contains.

    Attributes:
        texts: texts of users, the system and tools.
        runs: their words, made of letters and digits.
        chosen_from: enum values of the schemas.
    """

    texts: str
    runs: frozenset[str]
    chosen_from: frozenset[str]

    @classmethod
    def from_request(cls, body: bytes) -> Self:
        """Return the values of a request body; empty if it cannot be read as a request."""
        written = body.decode("utf-8", "replace")
        try:
            request = json.loads(written)
        except (ValueError, RecursionError):
            request = None
        texts = "\n".join(_list_request_texts(request)) if isinstance(request, dict) else ""
        return cls(texts, frozenset(WORD_PATTERN.findall(texts)), frozenset(_list_enum_values(written, texts)))

    def mask_values(self, value: Any, depth: int = 0) -> Any:
        """Return `value` with GIVEN_PLACEHOLDER for every text and number that the request contained."""
        if isinstance(value, dict) and depth < MAX_DEPTH:
            return {key: self.mask_values(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list) and depth < MAX_DEPTH:
            return [self.mask_values(item, depth + 1) for item in value]
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return GIVEN_PLACEHOLDER if self._is_given(str(value)) else value
        return value

    def _is_given(self, value: str) -> bool:
        if value in self.chosen_from or not _is_distinctive(value):
            return False
        written = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        return any(
            self.runs.issuperset(WORD_PATTERN.findall(word)) and _contains_words(self.texts, word) for word in written
        )


def _is_distinctive(value: str) -> bool:
    """Return whether the value is unlikely to be in a text by chance."""
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

    Scripts without cases may be written without spaces.
    """
    return len(pair) == 2 and all(word.isdecimal() or word.islower() or word.isupper() or word == "_" for word in pair)


def _list_request_texts(request: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a request. A rendered prompt is one text."""
    yield from list_content_texts(request.get("prompt"))
    yield from list_content_texts(request.get("system"))
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") in GIVEN_ROLES:
            yield from list_content_texts(message.get("content"))


def list_content_texts(content: Any, depth: int = 0) -> Iterator[str]:
    """Yield a text, or the texts in content blocks."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list) and depth < MAX_DEPTH:
        for block in content:
            yield from list_content_texts(block, depth + 1)
    elif isinstance(content, dict) and depth < MAX_DEPTH:
        yield from list_content_texts(content.get("text"), depth + 1)
        yield from list_content_texts(content.get("content"), depth + 1)


def _list_enum_values(*written: str) -> Iterator[str]:
    for values in (found for text in written for found in ENUM_PATTERN.findall(text)):
        try:
            yield from map(str, json.loads(values))
        except ValueError:
            continue
