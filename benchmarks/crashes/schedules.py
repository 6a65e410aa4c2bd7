"""Schedules: each fault before and after each event of every kind of work, in a random order."""

from collections.abc import Iterator, Mapping, Sequence
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
    """Return all schedules.

    Args:
        event_counts: number of events of each kind in a schedule without a crash.
    """
    return [
        CrashSchedule(kind, CrashPoint(number, moment, fault))
        for kind, count in event_counts.items()
        for number, moment, fault in product(range(1, count + 1), Moment, Fault)
    ]


def draw_schedules(event_counts: Mapping[str, int], seed: int, part: int = 0, parts: int = 1) -> list[CrashSchedule]:
    """Return the schedules of one of several parts in an order drawn by the seed, the kinds in turn.

    The part of a schedule depends on the schedule and the seed alone. So processes divide the schedules among
    themselves even if their numbers of events differ by one or two.
    """
    by_kind: dict[str, dict[int, CrashSchedule]] = {kind: {} for kind in event_counts}
    for schedule in list_schedules(event_counts):
        drawn = Random(f"{seed} {schedule}").getrandbits(64)
        if drawn % parts == part:
            by_kind[schedule.kind][drawn] = schedule
    return list(_take_in_turn([[schedules[drawn] for drawn in sorted(schedules)] for schedules in by_kind.values()]))


def _take_in_turn(parts: Sequence[Sequence[CrashSchedule]]) -> Iterator[CrashSchedule]:
    for place in range(max(map(len, parts), default=0)):
        for schedules in parts:
            yield from schedules[place : place + 1]
