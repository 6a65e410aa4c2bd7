"""Repair of call ids, so that the calls of an answer have unique ids that are not taken."""

from collections.abc import Collection, Iterable, Iterator

from toolbench.engine.types import Message
from toolbench.engine.wire_formats.parse_answer import list_structured_calls


def repair_ids(ids: Iterable[str], taken_ids: Collection[str] = ()) -> tuple[str, ...]:
    """Return unique ids in the same order.

    Each id is trimmed. A blank id becomes `tc_` with its position, from 1. An id that is taken or repeats an earlier
    one gets the suffix `__2`, `__3` and so on.
    """
    used_ids = set(taken_ids)
    suffix_by_id: dict[str, int] = {}
    unique_ids: list[str] = []
    for position, original_id in enumerate(ids, start=1):
        base_id = unique_id = original_id.strip() or f"tc_{position}"
        while unique_id in used_ids:
            suffix_by_id[base_id] = suffix_by_id.get(base_id, 1) + 1
            unique_id = f"{base_id}__{suffix_by_id[base_id]}"
        used_ids.add(unique_id)
        unique_ids.append(unique_id)
    return tuple(unique_ids)


def list_call_ids(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the ids of all calls in `tool_calls` of a conversation, except those that are not strings."""
    for message in messages:
        for call in list_structured_calls(message) if "tool_calls" in message else ():
            if isinstance(call.get("id"), str):
                yield call["id"]
