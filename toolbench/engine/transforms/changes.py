"""Differences between two JSON values, each with its path and short texts of the value before and after."""

import json
from collections.abc import Iterator

from toolbench.engine.json_paths import build_member_path

Change = tuple[str, str, str]  # path, text of the value before, text of the value after

MAX_SIDE_LENGTH = 200  # largest length of each text, in characters
MAX_DEPTH = 8  # levels of a path; a difference further down is reported for the value at this level


def list_changes(value_before: object, value_after: object) -> tuple[Change, ...]:
    """Return path, text before and text after for each value that differs.

    A text is compact JSON of at most MAX_SIDE_LENGTH characters, "" if the value exists on the other side only, or the
    name of the type (`<set>`) if the value cannot be written as JSON. A list whose length changed is reported as a
    whole. A value that is the same object before and after counts as unchanged, even if it was modified.
    """
    return tuple(_iterate_changes("$", value_before, value_after))


def _iterate_changes(path: str, value_before: object, value_after: object, levels: int = MAX_DEPTH) -> Iterator[Change]:
    """Yield the changes of the value at `path`, and of the values inside it down to `levels` levels."""
    if value_before is value_after:
        return
    if levels and isinstance(value_before, dict) and isinstance(value_after, dict):
        yield from _iterate_object_changes(path, value_before, value_after, levels - 1)
    elif (
        levels
        and isinstance(value_before, list)
        and isinstance(value_after, list)
        and len(value_before) == len(value_after)
    ):
        for index, (old_value, new_value) in enumerate(zip(value_before, value_after, strict=True)):
            yield from _iterate_changes(f"{path}[{index}]", old_value, new_value, levels - 1)
    elif type(value_before) is not type(value_after) or value_before != value_after:
        yield path, _render_side(value_before), _render_side(value_after)


def _iterate_object_changes(
    path: str, value_before: dict[str, object], value_after: dict[str, object], levels: int
) -> Iterator[Change]:
    """Yield the changes of an object's members: changed and removed ones in order, then added ones."""
    for key, old_value in value_before.items():
        if key in value_after:
            yield from _iterate_changes(build_member_path(path, key), old_value, value_after[key], levels)
        else:
            yield build_member_path(path, key), _render_side(old_value), ""
    for key, new_value in value_after.items():
        if key not in value_before:
            yield build_member_path(path, key), "", _render_side(new_value)


def _render_side(value: object) -> str:
    """Return a value as compact JSON for a change, truncated with `…` to MAX_SIDE_LENGTH characters."""
    if isinstance(value, str):
        value = value[:MAX_SIDE_LENGTH]
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError):
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_SIDE_LENGTH else text[: MAX_SIDE_LENGTH - 1] + "…"
