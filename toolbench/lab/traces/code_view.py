"""Bytes as lines to read: JSON is laid out with the path of every line, anything else is split as it is."""

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

MAX_LINES = 1_500
MAX_BYTES = 200_000
MAX_LINE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class CodeLine:
    """`path` is the JSON path of what starts on the line, "" outside JSON; `mark` is "", chg (differs) or bad."""

    text: str
    path: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class CodeView:
    """`cut` says that more follows than is shown; `size` is the whole size in bytes."""

    lines: tuple[CodeLine, ...]
    size: int
    cut: bool = False


def render_body(body: bytes, *, size: int | None = None) -> CodeView:
    """`body` may be the head of something `size` bytes long. Never raises: what is no JSON is shown as text."""
    whole = len(body) if size is None else size
    return _truncate_lines(render_body_lines(body, whole=whole), whole, cut=whole > len(body[:MAX_BYTES]))


def render_body_lines(body: bytes, *, whole: int) -> Iterator[CodeLine]:
    """The lines of `body`, the head of something `whole` bytes long; JSON that is there to its end is laid out."""
    value = _parse_json(body) if whole == len(body) <= MAX_BYTES else None
    if value is not None:
        return render_json_lines(value[0])
    text = body[:MAX_BYTES].decode("utf-8", "backslashreplace").replace("\0", "␀")
    return (CodeLine(line) for line in text.splitlines())


def render_value(value: Any) -> CodeView:
    """A JSON value, laid out."""
    size = len(json.dumps(value, default=str))
    return _truncate_lines(render_json_lines(value), size, cut=False)


def mark_differences(left: CodeView, right: CodeView) -> tuple[CodeView, CodeView]:
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


def mark_bad_paths(code: CodeView, paths: Sequence[str]) -> CodeView:
    """The lines at or below any of the JSON `paths` marked bad; a path to something missing marks nothing."""
    wanted = [path for path in paths if path and path != "$"]
    lines = (replace(line, mark="bad") if _is_below(line.path, wanted) else line for line in code.lines)
    return replace(code, lines=tuple(lines))


def _is_below(path: str, wanted: Sequence[str]) -> bool:
    return bool(path) and any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in wanted)


def _truncate_lines(lines: Iterator[CodeLine], size: int, *, cut: bool) -> CodeView:
    kept: list[CodeLine] = []
    for line in lines:
        if len(kept) == MAX_LINES:
            return CodeView(tuple(kept), size, cut=True)
        long = len(line.text) > MAX_LINE_CHARACTERS
        kept.append(replace(line, text=escape_unprintable(line.text[:MAX_LINE_CHARACTERS]) + (" …" if long else "")))
    return CodeView(tuple(kept), size, cut=cut)


def escape_unprintable(text: str) -> str:
    """`text` as a page takes it: NUL and lone surrogates are written out."""
    return text.replace("\0", "␀").encode("utf-8", "backslashreplace").decode("utf-8")


def _parse_json(body: bytes) -> tuple[Any] | None:
    try:
        return (json.loads(body),)
    except (ValueError, RecursionError):
        return None


def render_json_lines(value: Any) -> Iterator[CodeLine]:
    """Two spaces a level; what is nested deeper than a page is wide stays on one line."""
    yield from _render_part(value, path="$", lead="", depth=0, tail="")


def _render_part(value: Any, *, path: str, lead: str, depth: int, tail: str) -> Iterator[CodeLine]:
    indent = "  " * depth
    if depth > 40 or not value or not isinstance(value, dict | list):
        yield CodeLine(f"{indent}{lead}{_render_compact(value)}{tail}", path)
        return
    opener, closer = "{}" if isinstance(value, dict) else "[]"
    yield CodeLine(f"{indent}{lead}{opener}", path)
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    for place, (key, item) in enumerate(items):
        comma = "," if place < len(items) - 1 else ""
        below = f"{path}.{key}" if isinstance(value, dict) else f"{path}[{key}]"
        name = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(value, dict) else ""
        yield from _render_part(item, path=below, lead=name, depth=depth + 1, tail=comma)
    yield CodeLine(f"{indent}{closer}{tail}", path)


def _render_compact(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return "…"
