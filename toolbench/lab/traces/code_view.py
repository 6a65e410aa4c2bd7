"""Bytes as lines to read: JSON is laid out with the path of every line, anything else is split as it is."""

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

MOST_LINES = 1_500
MOST_BYTES = 200_000
LONGEST_LINE = 2_000


@dataclass(frozen=True, slots=True)
class Line:
    """`path` is the JSON path of what starts on the line, "" outside JSON; `mark` is "", chg (differs) or bad."""

    text: str
    path: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """`cut` says that more follows than is shown; `size` is the whole size in bytes."""

    lines: tuple[Line, ...]
    size: int
    cut: bool = False


def code_of(body: bytes, *, size: int | None = None) -> Code:
    """`body` may be the head of something `size` bytes long. Never raises: what is no JSON is shown as text."""
    whole = len(body) if size is None else size
    return _bounded(read_lines(body, whole=whole), whole, cut=whole > len(body[:MOST_BYTES]))


def read_lines(body: bytes, *, whole: int) -> Iterator[Line]:
    """The lines of `body`, the head of something `whole` bytes long; JSON that is there to its end is laid out."""
    value = _parsed(body) if whole == len(body) <= MOST_BYTES else None
    if value is not None:
        return laid_out(value[0])
    text = body[:MOST_BYTES].decode("utf-8", "backslashreplace").replace("\0", "␀")
    return (Line(line) for line in text.splitlines())


def code_of_value(value: Any) -> Code:
    """A JSON value, laid out."""
    size = len(json.dumps(value, default=str))
    return _bounded(laid_out(value), size, cut=False)


def compared(left: Code, right: Code) -> tuple[Code, Code]:
    """Both with the lines that differ marked chg; unmarked where either is cut."""
    if left.cut or right.cut:
        return left, right
    before, after = ([line.text for line in code.lines] for code in (left, right))
    matcher = difflib.SequenceMatcher(None, before, after)
    same = [set[int](), set[int]()]
    for block in matcher.get_matching_blocks():
        same[0] |= set(range(block.a, block.a + block.size))
        same[1] |= set(range(block.b, block.b + block.size))
    marked = [
        tuple(line if place in kept else replace(line, mark="chg") for place, line in enumerate(code.lines))
        for code, kept in zip((left, right), same, strict=True)
    ]
    return replace(left, lines=marked[0]), replace(right, lines=marked[1])


def blamed(code: Code, paths: Sequence[str]) -> Code:
    """The lines at or below any of the JSON `paths` marked bad; a path to something missing marks nothing."""
    wanted = [path for path in paths if path and path != "$"]
    lines = (replace(line, mark="bad") if _below(line.path, wanted) else line for line in code.lines)
    return replace(code, lines=tuple(lines))


def _below(path: str, wanted: Sequence[str]) -> bool:
    return bool(path) and any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in wanted)


def _bounded(lines: Iterator[Line], size: int, *, cut: bool) -> Code:
    kept: list[Line] = []
    for line in lines:
        if len(kept) == MOST_LINES:
            return Code(tuple(kept), size, cut=True)
        long = len(line.text) > LONGEST_LINE
        kept.append(replace(line, text=printable(line.text[:LONGEST_LINE]) + (" …" if long else "")))
    return Code(tuple(kept), size, cut=cut)


def printable(text: str) -> str:
    """`text` as a page takes it: NUL and lone surrogates are written out."""
    return text.replace("\0", "␀").encode("utf-8", "backslashreplace").decode("utf-8")


def _parsed(body: bytes) -> tuple[Any] | None:
    try:
        return (json.loads(body),)
    except (ValueError, RecursionError):
        return None


def laid_out(value: Any) -> Iterator[Line]:
    """Two spaces a level; what is nested deeper than a page is wide stays on one line."""
    yield from _part(value, path="$", lead="", depth=0, tail="")


def _part(value: Any, *, path: str, lead: str, depth: int, tail: str) -> Iterator[Line]:
    indent = "  " * depth
    if depth > 40 or not value or not isinstance(value, dict | list):
        yield Line(f"{indent}{lead}{_compact(value)}{tail}", path)
        return
    opener, closer = "{}" if isinstance(value, dict) else "[]"
    yield Line(f"{indent}{lead}{opener}", path)
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    for place, (key, item) in enumerate(items):
        comma = "," if place < len(items) - 1 else ""
        below = f"{path}.{key}" if isinstance(value, dict) else f"{path}[{key}]"
        name = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(value, dict) else ""
        yield from _part(item, path=below, lead=name, depth=depth + 1, tail=comma)
    yield Line(f"{indent}{closer}{tail}", path)


def _compact(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return "…"
