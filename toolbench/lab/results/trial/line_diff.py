"""Hunks of two lists of lines. Only MAX_COMPARED_LINES lines of each list are compared, so the time is bounded."""

import difflib
from collections.abc import Iterator, Sequence

from toolbench.lab.traces.code_view import CodeLine, escape_unprintable

CONTEXT_LINES = 2  # lines shown before and after a difference
MAX_COMPARED_LINES = 80  # of each side, from CONTEXT_LINES before the first difference

DiffSide = tuple[CodeLine, ...]


def build_hunks(left: Sequence[str], right: Sequence[str]) -> tuple[DiffSide, DiffSide]:
    """Return the lines to show of each side.

    A line that differs, or that the other side lacks, has the mark "chg". A line with the mark "skip" stands for lines
    that are left out: equal ones, and those after the MAX_COMPARED_LINES compared lines.
    """
    start = max(_find_first_difference(left, right) - CONTEXT_LINES, 0)
    compared = left[start : start + MAX_COMPARED_LINES], right[start : start + MAX_COMPARED_LINES]
    matcher = difflib.SequenceMatcher(None, *compared, autojunk=False)
    opcodes = [opcode for group in matcher.get_grouped_opcodes(CONTEXT_LINES) for opcode in group]
    left_spans = [(tag == "equal", first + start, end + start) for tag, first, end, _, _ in opcodes]
    right_spans = [(tag == "equal", first + start, end + start) for tag, _, _, first, end in opcodes]
    return tuple(_render_side(left, left_spans)), tuple(_render_side(right, right_spans))


def _find_first_difference(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    differing = (index for index, (left_line, right_line) in pairs if left_line != right_line)
    return next(differing, min(len(left), len(right)))


def _render_side(lines: Sequence[str], spans: Sequence[tuple[bool, int, int]]) -> Iterator[CodeLine]:
    """Yield the lines of one side.

    Args:
        lines: all lines of the side.
        spans: (is equal, first, end) in order; `end` is exclusive. Lines between spans are left out.
    """
    next_index = 0
    for is_equal, first, end in spans:
        if first > next_index:
            yield _build_skip_line(first - next_index, "equal")
        yield from (CodeLine(escape_unprintable(line), mark="" if is_equal else "chg") for line in lines[first:end])
        next_index = end
    if next_index < len(lines):
        yield _build_skip_line(len(lines) - next_index, "more")


def _build_skip_line(count: int, word: str) -> CodeLine:
    return CodeLine(f"… {count:,} {word} {'line' if count == 1 else 'lines'}", mark="skip")
