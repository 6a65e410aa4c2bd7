"""The exact stored bytes of a step, page by page, as text with visible escapes or raw."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import BinaryField, F, Func, IntegerField, Value

from toolbench.lab.models import Step

PAGE_BYTES = 50_000  # bytes
MAX_CHARACTER_BYTES = 4  # bytes of UTF-8
_NAMED_ESCAPES = {"\n": "\\n\n", "\t": "\\t", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class TextSegment:
    """Printable text, or the escapes of bytes that cannot be displayed."""

    text: str
    escape: bool


@dataclass(frozen=True, slots=True)
class BytesPage:
    """A page of the bytes of a body.

    Attributes:
        size: bytes of the whole body.
        pages: number of pages, at least 1.
        first: position of the first byte of the page, counted from 1.
        last: position of the last byte of the page, counted from 1.
    """

    step: Step
    side: str
    size: int
    page: int
    pages: int
    first: int
    last: int
    pieces: tuple[TextSegment, ...]

    @property
    def step_key(self) -> str:
        """Return the key of the step on the trial's page."""
        return f"{self.step.ordinal}.{'dispatch' if self.step.kind == Step.Kind.TOOL else self.side}"


def get_bytes_page(step_id: int, side: str, page: int) -> BytesPage:
    """Return a page of the bytes; for a page beyond the last, the last one.

    Args:
        step_id: the step.
        side: "request" or "response".
        page: number of the page, from 1.

    Raises:
        Step.DoesNotExist: there is no such step, or its run was deleted.
    """
    step = _get_step(step_id)
    size = int(_read_value(step, Func(F(f"body__{side}"), function="octet_length", output_field=IntegerField())) or 0)
    pages = max(1, -(-size // PAGE_BYTES))
    page = min(max(page, 1), pages)
    start = (page - 1) * PAGE_BYTES
    raw = bytes(_read_value(step, _build_substring(side, start, PAGE_BYTES + MAX_CHARACTER_BYTES)) or b"")
    head = _count_continuation_bytes(raw) if page > 1 else 0
    tail = PAGE_BYTES + _count_continuation_bytes(raw[PAGE_BYTES:]) if page < pages else len(raw)
    whole = raw[head:tail]
    return BytesPage(step, side, size, page, pages, start + head + 1, start + tail, tuple(split_invisible(whole)))


def get_bytes(step_id: int, side: str) -> tuple[Step, bytes]:
    """Return the step and all stored bytes of one side.

    Raises:
        Step.DoesNotExist: there is no such step, or its run was deleted.
    """
    step = _get_step(step_id)
    return step, bytes(_read_value(step, F(f"body__{side}")) or b"")


def split_invisible(raw: bytes) -> Iterator[TextSegment]:
    """Yield the bytes as text with escapes for bytes that are not printable or not UTF-8.

    A line break is yielded as its escape followed by a line break.
    """
    text = raw.decode("utf-8", "surrogateescape")
    for shown, run in groupby(text, key=_is_printable):
        written = "".join(run)
        yield TextSegment(written if shown else "".join(map(_escape, written)), not shown)


def _is_printable(character: str) -> bool:
    return character.isprintable()


def _escape(character: str) -> str:
    if character in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[character]
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _count_continuation_bytes(raw: bytes) -> int:
    """Return how many bytes at the start belong to a character that began before them."""
    head = raw[: MAX_CHARACTER_BYTES - 1]
    return next((place for place, byte in enumerate(head) if byte & 0xC0 != 0x80), len(head))


def _get_step(step_id: int) -> Step:
    return Step.objects.select_related("trial", "trial__run").get(pk=step_id, trial__run__deleted_at=None)


def _build_substring(side: str, start: int, length: int) -> Func:
    return Func(F(f"body__{side}"), Value(start + 1), Value(length), function="substring", output_field=BinaryField())


def _read_value(step: Step, expression: Func | F) -> Any:
    """Return a value from the step's body, None if there is none."""
    return Step.objects.filter(pk=step.pk).values_list(expression, flat=True).first()
