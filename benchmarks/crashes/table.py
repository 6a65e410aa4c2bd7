"""Table of the results: the number of schedules of each kind, and the invariants that they broke."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

FOUND_KINDS = ("lost", "doubled", "stuck", "limit")
_HEAD = ("kind", "events", "schedules", "kill", "cut", "freeze", *FOUND_KINDS, "other")


def render_table(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return a Markdown table of the schedules whose fault happened, a row for each kind and one for all."""
    events: dict[str, int] = {}
    counts: dict[str, Counter[str]] = {}
    for line in lines:
        if line["point"] is None:
            events[line["kind"]] = line["events"]
        elif line["was_hit"]:
            counter = counts.setdefault(line["kind"], Counter())
            counter.update(["schedules", line["point"]["fault"], *_name_findings(line)])
    rows = [_build_row(kind, str(events.get(kind, "")), counter) for kind, counter in counts.items()]
    total = sum(counts.values(), Counter())
    rows.append(_build_row("all", "", total))
    return "\n".join(f"| {' | '.join(row)} |" for row in (_HEAD, ["---"] * len(_HEAD), *rows))


def _name_findings(line: Mapping[str, Any]) -> set[str]:
    """Return the columns in which the schedule counts."""
    found = {violation["kind"] for violation in line["violations"]}
    names = {kind for kind in FOUND_KINDS if kind in found}
    if "queued" in found:
        names.add("stuck")
    return names | ({"other"} if found - {*FOUND_KINDS, "queued"} else set())


def _build_row(name: str, events: str, counter: Counter[str]) -> list[str]:
    return [name, events, *(f"{counter[column]:,}" for column in _HEAD[2:])]
