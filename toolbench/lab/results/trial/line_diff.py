"""Differences of two lists of lines with some context, in bounded time and length."""

import difflib
from collections.abc import Iterator, Sequence

from toolbench.lab.traces.code_view import CodeLine, escape_unprintable

CONTEXT_LINES = 2  # lines shown before and after a difference
MAX_COMPARED_LINES = 80  # lines of each side compared, from the first that differs

DiffSide = tuple[CodeLine, ...]


def build_hunks(left: Sequence[str], right: Sequence[str]) -> tuple[DiffSide, DiffSide]:
    """Return the lines to show of each side: marked "chg" where they differ, "skip" where lines are left out."""
    first = _find_first_difference(left, right)
    start = max(first - CONTEXT_LINES, 0)
    heads = left[start : start + MAX_COMPARED_LINES], right[start : start + MAX_COMPARED_LINES]
    matcher = difflib.SequenceMatcher(None, *heads, autojunk=False)
    groups = list(matcher.get_grouped_opcodes(CONTEXT_LINES))
    return (
        tuple(
            _render_side(
                left, [(tag == "equal", a + start, b + start) for group in groups for tag, a, b, _, _ in group]
            )
        ),
        tuple(
            _render_side(
                right, [(tag == "equal", c + start, d + start) for group in groups for tag, _, _, c, d in group]
            )
        ),
    )


def _find_first_difference(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(left), len(right)))


def _render_side(lines: Sequence[str], spans: Sequence[tuple[bool, int, int]]) -> Iterator[CodeLine]:
    """Yield the lines of one side.

    Args:
        lines: all lines of the side.
        spans: (equal, first, end) in order. Lines between spans are left out.
    """
    shown_lines = 0
    for equal, first, end in spans:
        if first > shown_lines:
            yield _build_skip_line(first - shown_lines, "alike")
        yield from (CodeLine(escape_unprintable(line), mark="" if equal else "chg") for line in lines[first:end])
        shown_lines = end
    if shown_lines < len(lines):
        yield _build_skip_line(len(lines) - shown_lines, "more")


def _build_skip_line(count: int, kind: str) -> CodeLine:
    return CodeLine(f"… {count:,} {'line' if count == 1 else 'lines'} {kind}", mark="skip")
