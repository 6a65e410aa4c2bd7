"""Which values of a call's arguments its own request had given: those of an instance, which another instance draws
anew."""

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
    """The texts that users, the system and tools said, their runs of letters and digits, and what schemas choose
    from."""

    texts: str
    runs: frozenset[str]
    chosen_from: frozenset[str]

    @classmethod
    def from_request(cls, body: bytes) -> Self:
        """Of what cannot be read as a request nothing is given."""
        written = body.decode("utf-8", "replace")
        try:
            request = json.loads(written)
        except (ValueError, RecursionError):
            request = None
        texts = "\n".join(_list_request_texts(request)) if isinstance(request, dict) else ""
        return cls(texts, frozenset(WORD_PATTERN.findall(texts)), frozenset(_list_enum_values(written, texts)))

    def mask_values(self, value: Any, depth: int = 0) -> Any:
        """`value` with GIVEN in place of every text and number that was given."""
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
            self.runs.issuperset(WORD_PATTERN.findall(one)) and _contains_words(self.texts, one) for one in written
        )


def _is_distinctive(value: str) -> bool:
    """Whether it would hardly stand in a text by chance."""
    return any(map(str.isalpha, value)) or sum(map(str.isdigit, value)) >= MIN_DIGITS


def _contains_words(texts: str, value: str) -> bool:
    """As whole words."""
    start = texts.find(value)
    while start >= 0:
        end = start + len(value)
        if not _is_one_word(texts[start - 1 : start] + value[0]) and not _is_one_word(value[-1] + texts[end : end + 1]):
            return True
        start = texts.find(value, start + 1)
    return False


def _is_one_word(pair: str) -> bool:
    """Whether two neighbours belong to one word; scripts without cases may write no spaces."""
    return len(pair) == 2 and all(one.isdecimal() or one.islower() or one.isupper() or one == "_" for one in pair)


def _list_request_texts(request: dict[str, Any]) -> Iterator[str]:
    """A rendered prompt is one text."""
    yield from _list_content_texts(request.get("prompt"))
    yield from _list_content_texts(request.get("system"))
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") in GIVEN_ROLES:
            yield from _list_content_texts(message.get("content"))


def _list_content_texts(content: Any, depth: int = 0) -> Iterator[str]:
    """A text, or the texts in blocks of content."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list) and depth < MAX_DEPTH:
        for block in content:
            yield from _list_content_texts(block, depth + 1)
    elif isinstance(content, dict) and depth < MAX_DEPTH:
        yield from _list_content_texts(content.get("text"), depth + 1)
        yield from _list_content_texts(content.get("content"), depth + 1)


def _list_enum_values(*written: str) -> Iterator[str]:
    for values in (found for text in written for found in ENUM_PATTERN.findall(text)):
        try:
            yield from map(str, json.loads(values))
        except ValueError:
            continue
