"""Stored bodies and JSON values as lines for display. JSON is indented, and each of its lines has a JSON path."""

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolbench.engine.json_paths import build_member_path

MAX_LINES = 1_500
MAX_BYTES = 200_000  # bytes of a body that are displayed; the rest is omitted
MAX_LINE_CHARACTERS = 2_000
MAX_DEPTH = 40  # levels of indentation of JSON


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One line of a body.

    Attributes:
        path: JSON path of the value that starts or ends on the line; "" outside of JSON.
        mark: "chg" for a line that differs, "bad" for one with a problem, "skip" for omitted lines, else "".
    """

    text: str
    path: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class CodeView:
    """Displayed lines of a body or JSON value.

    Attributes:
        size: bytes of the complete body, or characters of the JSON value.
        is_truncated: whether lines or bytes after the displayed ones are omitted; False if only long lines are cut off.
    """

    lines: tuple[CodeLine, ...]
    size: int
    is_truncated: bool = False


def render_body(body: bytes, *, size: int | None = None) -> CodeView:
    """Return the view of a body; content that is not JSON is shown as text.

    Args:
        body: the body, or its beginning.
        size: size of the whole body in bytes; None if `body` is the whole body.
    """
    body_bytes = len(body) if size is None else size
    lines = render_body_lines(body, body_bytes=body_bytes)
    return _truncate_lines(lines, body_bytes, is_truncated=body_bytes > len(body[:MAX_BYTES]))


def render_body_lines(body: bytes, *, body_bytes: int) -> Iterator[CodeLine]:
    """Return the lines of a body; JSON that is complete and has at most MAX_BYTES is indented.

    Args:
        body: the body, or its beginning.
        body_bytes: size of the whole body in bytes.
    """
    value = _parse_json(body) if body_bytes == len(body) <= MAX_BYTES else None
    if value is not None:
        return render_json_lines(value[0])
    text = body[:MAX_BYTES].decode("utf-8", "backslashreplace").replace("\0", "␀")
    return (CodeLine(line) for line in text.splitlines())


def render_value(value: Any) -> CodeView:
    """Return the view of a JSON value."""
    size = len(json.dumps(value, default=str))
    return _truncate_lines(render_json_lines(value), size, is_truncated=False)


def mark_differences(left: CodeView, right: CodeView) -> tuple[CodeView, CodeView]:
    """Return both views, with the lines that differ marked "chg"; no line is marked if a view is truncated."""
    if left.is_truncated or right.is_truncated:
        return left, right
    before, after = ([line.text for line in code.lines] for code in (left, right))
    matcher = difflib.SequenceMatcher(None, before, after)
    equal_indexes = [set[int](), set[int]()]
    for block in matcher.get_matching_blocks():
        equal_indexes[0] |= set(range(block.a, block.a + block.size))
        equal_indexes[1] |= set(range(block.b, block.b + block.size))
    marked = [
        tuple(line if index in equal else replace(line, mark="chg") for index, line in enumerate(code.lines))
        for code, equal in zip((left, right), equal_indexes, strict=True)
    ]
    return replace(left, lines=marked[0]), replace(right, lines=marked[1])


def mark_bad_paths(code: CodeView, paths: Sequence[str]) -> CodeView:
    """Return the view with the lines at or below these JSON paths marked "bad".

    A path to a value that is missing marks no line, and neither do "" and "$".
    """
    bad_paths = [path for path in paths if path and path != "$"]
    lines = (replace(line, mark="bad") if is_below(line.path, bad_paths) else line for line in code.lines)
    return replace(code, lines=tuple(lines))


def is_below(path: str, bad_paths: Sequence[str]) -> bool:
    """Return whether the path of a line is one of `bad_paths` or below one of them; False for ""."""
    return bool(path) and any(
        path == bad_path or path.startswith((f"{bad_path}.", f"{bad_path}[")) for bad_path in bad_paths
    )


def _truncate_lines(lines: Iterator[CodeLine], size: int, *, is_truncated: bool) -> CodeView:
    shown: list[CodeLine] = []
    for line in lines:
        if len(shown) == MAX_LINES:
            return CodeView(tuple(shown), size, is_truncated=True)
        ellipsis = " …" if len(line.text) > MAX_LINE_CHARACTERS else ""
        shown.append(replace(line, text=escape_unprintable(line.text[:MAX_LINE_CHARACTERS]) + ellipsis))
    return CodeView(tuple(shown), size, is_truncated=is_truncated)


def escape_unprintable(text: str) -> str:
    """Return the text with NUL shown as "␀" and lone surrogates as backslash escapes."""
    return text.replace("\0", "␀").encode("utf-8", "backslashreplace").decode("utf-8")


def _parse_json(body: bytes) -> tuple[Any] | None:
    """Return the value of a body in a tuple, as the value itself may be None; None if the body is not JSON."""
    try:
        return (json.loads(body),)
    except (ValueError, RecursionError):
        return None


def render_json_lines(value: Any) -> Iterator[CodeLine]:
    """Yield the lines of a JSON value, indented by two spaces a level; values deeper than MAX_DEPTH take one line."""
    yield from _render_part(value, path="$", prefix="", depth=0, suffix="")


def _render_part(value: Any, *, path: str, prefix: str, depth: int, suffix: str) -> Iterator[CodeLine]:
    indent = "  " * depth
    if depth > MAX_DEPTH or not value or not isinstance(value, dict | list):
        yield CodeLine(f"{indent}{prefix}{_render_compact(value)}{suffix}", path)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield CodeLine(f"{indent}{prefix}{opening}", path)
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    for index, (key, item) in enumerate(items):
        comma = "," if index < len(items) - 1 else ""
        item_path = build_member_path(path, key) if isinstance(value, dict) else f"{path}[{key}]"
        name = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(value, dict) else ""
        yield from _render_part(item, path=item_path, prefix=name, depth=depth + 1, suffix=comma)
    yield CodeLine(f"{indent}{closing}{suffix}", path)


def _render_compact(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return "…"
