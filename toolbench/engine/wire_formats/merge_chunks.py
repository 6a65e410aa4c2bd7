"""A field that came in parts, as one value."""

from collections.abc import Sequence
from typing import Any

JOINED_FIELDS = ("text", "summary", "data", "thinking", "reasoning", "reasoning_content", "content", "refusal")
_FIXED_FIELDS = ("type", "id", "index", "format", "role")


def merge_chunks(pieces: Sequence[Any], key: str = "") -> Any:
    """Return the value of a field from its parts; nulls are ignored.

    Texts are joined, objects merged, and list items with equal `index` and `type` too; of other values the last one
    counts. A text that cannot grow (`type`, `id` …), or that only repeats itself, is taken once.
    """
    known_pieces = [piece for piece in pieces if piece is not None]
    if len(known_pieces) < 2:
        return known_pieces[0] if known_pieces else None
    if all(isinstance(piece, str) for piece in known_pieces):
        return _join_text(known_pieces, key)
    if all(isinstance(piece, dict) for piece in known_pieces):
        names = dict.fromkeys(name for piece in known_pieces for name in piece)
        return {name: merge_chunks([piece[name] for piece in known_pieces if name in piece], name) for name in names}
    if all(isinstance(piece, list) for piece in known_pieces):
        return _merge_items([item for piece in known_pieces for item in piece])
    return known_pieces[-1]


def _join_text(texts: Sequence[str], key: str) -> str:
    again = key in _FIXED_FIELDS or (key not in JOINED_FIELDS and len({text for text in texts if text}) == 1)
    return next((text for text in reversed(texts) if text), "") if again else "".join(texts)


def _merge_items(items: Sequence[Any]) -> list[Any]:
    groups: dict[object, list[Any]] = {}
    for place, item in enumerate(items):
        index = item.get("index") if isinstance(item, dict) else None
        known = isinstance(index, int)
        groups.setdefault((index, str(item.get("type"))) if known else ("", place), []).append(item)
    return [merge_chunks(group) for group in groups.values()]
