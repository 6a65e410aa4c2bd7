"""Differences of two JSON values: the path of each, with a short text of the value before and after."""

import json
from collections.abc import Iterator

Change = tuple[str, str, str]

MAX_SIDE_LENGTH = 200  # characters kept of the value before and of the value after
MAX_DEPTH = 8  # levels of a path; a difference further down is reported for the value at this level


def list_changes(before: object, after: object) -> tuple[Change, ...]:
    """Return path, text before and text after for each part that differs.

    A text is compact JSON of at most 200 characters, or "" if the part exists on the other side only. A list whose
    length changed is one part. Parts that are the same object are not compared.
    """
    return tuple(_walk("$", before, after))


def _walk(path: str, before: object, after: object) -> Iterator[Change]:
    if before is after:
        return
    depth_left = path.count(".") + path.count("[") < MAX_DEPTH
    if depth_left and isinstance(before, dict) and isinstance(after, dict):
        yield from _walk_objects(path, before, after)
    elif depth_left and isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _walk(f"{path}[{index}]", old, new)
    elif type(before) is not type(after) or before != after:
        yield path, _truncate(before), _truncate(after)


def _walk_objects(path: str, before: dict[str, object], after: dict[str, object]) -> Iterator[Change]:
    for key, old in before.items():
        if key in after:
            yield from _walk(f"{path}.{key}", old, after[key])
        else:
            yield f"{path}.{key}", _truncate(old), ""
    for key, new in after.items():
        if key not in before:
            yield f"{path}.{key}", "", _truncate(new)


def _truncate(value: object) -> str:
    if isinstance(value, str):
        value = value[:MAX_SIDE_LENGTH]
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError):
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_SIDE_LENGTH else text[: MAX_SIDE_LENGTH - 1] + "…"
