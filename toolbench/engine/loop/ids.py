"""Repair of call ids, so that each result of a conversation belongs to one call."""

from collections.abc import Collection, Iterable, Iterator

from toolbench.engine.types import Message
from toolbench.engine.wire_formats.parse_answer import list_structured_calls


def repair_ids(ids: Iterable[str], taken: Collection[str] = ()) -> tuple[str, ...]:
    """Return unique ids in the same order.

    The first use of an id keeps it. A blank id becomes `tc_<number from 1>`; a repeated or taken one gets `__2`, `__3`
    …
    """
    used = set(taken)
    repeats: dict[str, int] = {}
    result: list[str] = []
    for place, given in enumerate(ids, start=1):
        base = unique = given.strip() or f"tc_{place}"
        while unique in used:
            repeats[base] = repeats.get(base, 1) + 1
            unique = f"{base}__{repeats[base]}"
        used.add(unique)
        result.append(unique)
    return tuple(result)


def list_call_ids(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the ids of all calls in a conversation."""
    for message in messages:
        for call in list_structured_calls(message) if "tool_calls" in message else ():
            if isinstance(call.get("id"), str):
                yield call["id"]
