"""Readers of input do work in proportion to its size, counted in lines and calls, not in seconds.

Lines and calls do not show the work of an expression inside C, so the sources are also searched for slices in
comparisons.
"""

import ast
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.input_readers import READER_BY_NAME, InputReader

SIZE = 3000
# The scripts of simulated models have a few calls each and come from Toolbench itself.
SOURCES = sorted(set(Path("toolbench").rglob("*.py")) - {Path("toolbench/providers/simulated/next_move.py")})


class _WorkCounter:
    """Counter of executed lines and of calls of Python and C functions."""

    def __init__(self) -> None:
        self.steps = 0

    def count(self, reader: InputReader, text: Any) -> int:
        self.steps = 0
        before = sys.gettrace(), sys.getprofile()
        sys.settrace(self._line)
        sys.setprofile(self._call)
        try:
            reader.read(text)
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
def test_input_reader_does_linear_work(name: str) -> None:
    reader, work = READER_BY_NAME[name], _WorkCounter()
    text, larger_text = reader.build_input(SIZE), reader.build_input(4 * SIZE)
    work.count(reader, text)  # values that are made on first use do not count

    small, large = work.count(reader, text), work.count(reader, larger_text)

    assert large <= 5 * small + 500
    assert large <= reader.steps * 4 * SIZE + 500


def _find_slice_searches(path: Path) -> list[str]:
    """Return the places that search a copied part of a sequence, which takes quadratic time in a loop."""
    compared = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Compare))
    return [
        f"{path}:{node.lineno}"
        for node in compared
        for operator, right in zip(node.ops, node.comparators, strict=True)
        if isinstance(operator, ast.In | ast.NotIn) and _is_long_slice(right)
    ]


def _is_long_slice(node: ast.expr) -> bool:
    """Return whether the node is a slice without a number as one of its ends."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return False
    ends = (end.operand if isinstance(end, ast.UnaryOp) else end for end in (node.slice.lower, node.slice.upper))
    return not any(isinstance(end, ast.Constant) for end in ends)


def test_sources_search_no_growing_slice() -> None:
    assert [place for path in SOURCES for place in _find_slice_searches(path)] == []


def test_find_slice_searches_finds_only_growing_slice(tmp_path: Path) -> None:
    """The first line once made the report of a duplicate key slow."""
    source = tmp_path / "source.py"
    source.write_text("found = [n for p, n in enumerate(names) if n in names[:p]]\nnear = n in names[-2:]\n")
    assert _find_slice_searches(source) == [f"{source}:1"]
