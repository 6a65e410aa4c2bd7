"""Merging of a field that was received in chunks."""

from collections.abc import Sequence
from typing import Any

# Fields whose chunks are joined even if they are equal, since text may repeat itself.
JOINED_FIELDS = ("text", "summary", "data", "thinking", "reasoning", "reasoning_content", "content", "refusal")
# Fields that servers repeat as a whole in each chunk, so that the last text counts.
_FIXED_FIELDS = ("type", "id", "index", "format", "role")


def merge_chunks(chunks: Sequence[Any], key: str = "") -> Any:
    """Return the value of a field from its chunks; nulls are ignored.

    Texts are joined. Objects are merged. Lists are joined, and their items with equal `index` and `type` are merged. Of
    other or mixed values the last one is returned. Texts of a fixed field (`type`, `id` …), and equal texts of a field
    outside of JOINED_FIELDS, are not joined: the last one that is not empty is returned.

    Args:
        chunks: the received values, in order.
        key: name of the field; "" for an item of a list.

    Returns:
        The value; None if all chunks are null.
    """
    present_chunks = [chunk for chunk in chunks if chunk is not None]
    if len(present_chunks) < 2:
        return present_chunks[0] if present_chunks else None
    if all(isinstance(chunk, str) for chunk in present_chunks):
        return _join_text(present_chunks, key)
    if all(isinstance(chunk, dict) for chunk in present_chunks):
        names = dict.fromkeys(name for chunk in present_chunks for name in chunk)
        return {name: merge_chunks([chunk[name] for chunk in present_chunks if name in chunk], name) for name in names}
    if all(isinstance(chunk, list) for chunk in present_chunks):
        return _merge_items([item for chunk in present_chunks for item in chunk])
    return present_chunks[-1]


def _join_text(texts: Sequence[str], key: str) -> str:
    is_repeated = key in _FIXED_FIELDS or (key not in JOINED_FIELDS and len({text for text in texts if text}) == 1)
    return next((text for text in reversed(texts) if text), "") if is_repeated else "".join(texts)


def _merge_items(items: Sequence[Any]) -> list[Any]:
    """Merge items with the same `index` and `type`, in the order of their first occurrence; keep others as they are."""
    groups: dict[object, list[Any]] = {}
    for position, item in enumerate(items):
        index = item.get("index") if isinstance(item, dict) else None
        has_index = isinstance(index, int)
        groups.setdefault((index, str(item.get("type"))) if has_index else ("", position), []).append(item)
    return [merge_chunks(group) for group in groups.values()]
