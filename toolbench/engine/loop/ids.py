"""Repairing the ids of calls, so that every result of a conversation can be told apart."""

from collections.abc import Collection, Iterable, Iterator

from toolbench.engine.types import Message
from toolbench.engine.wire_formats.parse_answer import list_structured_calls


def repair_ids(ids: Iterable[str], taken: Collection[str] = ()) -> tuple[str, ...]:
    """The first use of an id keeps it; a blank one becomes `tc_<place from 1>`; a repeat, or one that is taken already,
    gets `__2`, `__3` …"""
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
    """The ids of all calls that a conversation holds."""
    for message in messages:
        for call in list_structured_calls(message) if "tool_calls" in message else ():
            if isinstance(call.get("id"), str):
                yield call["id"]
