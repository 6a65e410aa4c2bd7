"""Choice of schedules: every kind of work, a fault before and after each of its events, in an order drawn by a seed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from random import Random

from benchmarks.crashes.crash_points import CrashPoint, Fault, Moment


@dataclass(frozen=True, slots=True)
class CrashSchedule:
    """A kind of work and the point at which its process crashes."""

    kind: str
    point: CrashPoint


def list_schedules(event_counts: Mapping[str, int]) -> list[CrashSchedule]:
    """Return all schedules; `event_counts` has the number of events of each kind without a crash."""
    return [
        CrashSchedule(kind, CrashPoint(number, moment, fault))
        for kind, count in event_counts.items()
        for number, moment, fault in product(range(1, count + 1), Moment, Fault)
    ]


def draw_schedules(event_counts: Mapping[str, int], seed: int) -> list[CrashSchedule]:
    """Return all schedules in an order drawn by the seed, the kinds in turn as long as they last."""
    by_kind: dict[str, list[CrashSchedule]] = {kind: [] for kind in event_counts}
    for schedule in list_schedules(event_counts):
        by_kind[schedule.kind].append(schedule)
    for kind, schedules in by_kind.items():
        Random(f"{seed} {kind}").shuffle(schedules)
    return list(_take_in_turn(by_kind))


def _take_in_turn(by_kind: Mapping[str, list[CrashSchedule]]) -> Iterator[CrashSchedule]:
    for place in range(max(map(len, by_kind.values()), default=0)):
        for schedules in by_kind.values():
            yield from schedules[place : place + 1]
