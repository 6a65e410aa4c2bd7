"""Stored bytes of a step: as pages of text with escapes for invisible bytes, or as they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import BinaryField, F, Func, IntegerField, Value

from toolbench.lab.models import Step

PAGE_BYTES = 50_000
MAX_CHARACTER_BYTES = 4  # of a character in UTF-8
_NAMED_ESCAPES = {"\n": "\\n\n", "\t": "\\t", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class TextSegment:
    """Printable text, or escapes of bytes that cannot be displayed."""

    text: str
    escaped: bool


@dataclass(frozen=True, slots=True)
class BytesPage:
    """Page of the bytes of a body.

    Attributes:
        side: "request" or "response".
        size: number of bytes of the whole body.
        page: number of the page, from 1.
        pages: number of pages, at least 1.
        first: position of the first byte of the page, from 1.
        last: position of the last byte of the page, from 1; 0 for an empty body.
        parts: text of the page.
    """

    step: Step
    side: str
    size: int
    page: int
    pages: int
    first: int
    last: int
    parts: tuple[TextSegment, ...]

    @property
    def step_key(self) -> str:
        """Return the key of the step's timeline row on the trial page."""
        return f"{self.step.ordinal}.{'dispatch' if self.step.kind == Step.Kind.TOOL else self.side}"


def get_bytes_page(step_id: int, side: str, page: int) -> BytesPage:
    """Return a page of the bytes of a body. A page does not begin or end within a character of UTF-8.

    Args:
        step_id: primary key of the step.
        side: "request" or "response".
        page: number of the page, from 1; a greater number than that of the last page stands for the last page.

    Raises:
        Step.DoesNotExist: the step does not exist, or its run was deleted.
    """
    step = _get_step(step_id)
    size = int(_read_value(step, Func(F(f"body__{side}"), function="octet_length", output_field=IntegerField())) or 0)
    pages = max(1, -(-size // PAGE_BYTES))
    page = min(max(page, 1), pages)
    start = (page - 1) * PAGE_BYTES
    raw = bytes(_read_value(step, _build_substring(side, start, PAGE_BYTES + MAX_CHARACTER_BYTES)) or b"")
    begin = _count_continuation_bytes(raw) if page > 1 else 0
    end = PAGE_BYTES + _count_continuation_bytes(raw[PAGE_BYTES:]) if page < pages else len(raw)
    segments = tuple(split_invisible(raw[begin:end]))
    return BytesPage(step, side, size, page, pages, start + begin + 1, start + end, segments)


def get_bytes(step_id: int, side: str) -> tuple[Step, bytes]:
    """Return the step and all stored bytes of its request or response.

    Raises:
        Step.DoesNotExist: the step does not exist, or its run was deleted.
    """
    step = _get_step(step_id)
    return step, bytes(_read_value(step, F(f"body__{side}")) or b"")


def split_invisible(raw: bytes) -> Iterator[TextSegment]:
    """Yield the bytes as text, with escapes for bytes that are not printable or not UTF-8.

    The escape of a line break is followed by a line break.
    """
    text = raw.decode("utf-8", "surrogateescape")
    for is_printable, characters in groupby(text, key=str.isprintable):
        part = "".join(characters)
        yield TextSegment(part if is_printable else "".join(map(_escape, part)), not is_printable)


def _escape(character: str) -> str:
    if character in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[character]
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _count_continuation_bytes(raw: bytes) -> int:
    """Return how many bytes at the start belong to a character of UTF-8 that begins before them."""
    first_bytes = raw[: MAX_CHARACTER_BYTES - 1]
    return next((index for index, byte in enumerate(first_bytes) if byte & 0xC0 != 0x80), len(first_bytes))


def _get_step(step_id: int) -> Step:
    return Step.objects.select_related("trial", "trial__run").get(pk=step_id, trial__run__deleted_at=None)


def _build_substring(side: str, start: int, length: int) -> Func:
    return Func(F(f"body__{side}"), Value(start + 1), Value(length), function="substring", output_field=BinaryField())


def _read_value(step: Step, expression: Func | F) -> Any:
    """Return the value of an expression for the step's body; None if no body is stored."""
    return Step.objects.filter(pk=step.pk).values_list(expression, flat=True).first()
