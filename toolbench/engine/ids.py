"""Repairing the ids of one answer's calls, so that every result can be told apart."""

from collections.abc import Iterable


def repaired_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """The first use of an id keeps it; a blank one becomes `tc_<place from 1>`; a repeat gets `__2`, `__3` …"""
    used: set[str] = set()
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
