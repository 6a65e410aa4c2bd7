"""Where two lists of lines differ, with a little around it, in bounded time and length whatever their size."""

import difflib
from collections.abc import Iterator, Sequence

from toolbench.lab.traces.code_view import Line, printable

AROUND = 2  # lines shown before and after a difference
MOST = 80  # lines of each side compared, from the first that differs

Side = tuple[Line, ...]


def hunks(left: Sequence[str], right: Sequence[str]) -> tuple[Side, Side]:
    """What to show of each side: lines marked chg where they differ, skip where equal or further ones are left out."""
    first = _first_difference(left, right)
    start = max(first - AROUND, 0)
    heads = left[start : start + MOST], right[start : start + MOST]
    matcher = difflib.SequenceMatcher(None, *heads, autojunk=False)
    groups = list(matcher.get_grouped_opcodes(AROUND))
    return (
        tuple(_side(left, [(tag == "equal", a + start, b + start) for group in groups for tag, a, b, _, _ in group])),
        tuple(_side(right, [(tag == "equal", c + start, d + start) for group in groups for tag, _, _, c, d in group])),
    )


def _first_difference(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(left), len(right)))


def _side(lines: Sequence[str], spans: Sequence[tuple[bool, int, int]]) -> Iterator[Line]:
    """`spans` are (equal, first, end) in order; what lies between them is left out."""
    told = 0
    for equal, first, end in spans:
        if first > told:
            yield _left_out(first - told, "alike")
        yield from (Line(printable(line), mark="" if equal else "chg") for line in lines[first:end])
        told = end
    if told < len(lines):
        yield _left_out(len(lines) - told, "more")


def _left_out(count: int, kind: str) -> Line:
    return Line(f"… {count:,} {'line' if count == 1 else 'lines'} {kind}", mark="skip")
