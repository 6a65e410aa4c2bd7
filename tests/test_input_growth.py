"""Everything that reads input does work in proportion to its size, counted in lines and calls, not in seconds.

Lines and calls do not show what one expression does inside C, so slices in comparisons are searched for in the source
as well."""

import ast
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.input_readers import READER_BY_NAME, InputReader

SIZE = 3000
# The scripts that simulated models follow are Toolbench's own, of a few calls each.
SOURCES = sorted(set(Path("toolbench").rglob("*.py")) - {Path("toolbench/providers/simulated/next_move.py")})


class _Work:
    """Counts executed lines and calls of functions, Python's and C's."""

    def __init__(self) -> None:
        self.steps = 0

    def of(self, reader: InputReader, given: Any) -> int:
        self.steps = 0
        before = sys.gettrace(), sys.getprofile()
        sys.settrace(self._line)
        sys.setprofile(self._call)
        try:
            reader.read(given)
        finally:
            sys.settrace(before[0])
            sys.setprofile(before[1])
        return self.steps

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.steps += event == "line"
        return self._line

    def _call(self, frame: FrameType, event: str, argument: Any) -> None:
        self.steps += event in ("call", "c_call")


@pytest.mark.parametrize("name", READER_BY_NAME)
def test_reader_does_linear_work(name: str) -> None:
    reader, work = READER_BY_NAME[name], _Work()
    given, larger = reader.make(SIZE), reader.make(4 * SIZE)
    work.of(reader, given)  # what is made on first use does not count

    small, large = work.of(reader, given), work.of(reader, larger)

    assert large <= 5 * small + 500
    assert large <= reader.steps * 4 * SIZE + 500


def _slice_searches(path: Path) -> list[str]:
    """Places in which something is looked for in a copied part of a sequence, which is quadratic in a loop."""
    compared = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Compare))
    return [
        f"{path}:{node.lineno}"
        for node in compared
        for operator, right in zip(node.ops, node.comparators, strict=True)
        if isinstance(operator, ast.In | ast.NotIn) and _is_long_slice(right)
    ]


def _is_long_slice(node: ast.expr) -> bool:
    """Whether it is a slice whose ends are not written as numbers."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return False
    ends = (end.operand if isinstance(end, ast.UnaryOp) else end for end in (node.slice.lower, node.slice.upper))
    return not any(isinstance(end, ast.Constant) for end in ends)


def test_source_searches_no_growing_slice() -> None:
    assert [place for path in SOURCES for place in _slice_searches(path)] == []


def test_slice_search_is_found_where_there_is_one(tmp_path: Path) -> None:
    """The rule itself: the line that made a duplicate key slow."""
    source = tmp_path / "source.py"
    source.write_text("found = [n for p, n in enumerate(names) if n in names[:p]]\nnear = n in names[-2:]\n")
    assert _slice_searches(source) == [f"{source}:1"]
