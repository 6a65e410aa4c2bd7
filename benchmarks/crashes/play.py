"""Process that plays schedules on the database of the environment and prints a JSON line for each.

`python -m benchmarks.crashes` starts `python -m benchmarks.crashes.play SEED PART PARTS SCHEDULES FILE`. It plays one
of PARTS parts, without the schedules that have a line in the file, and stops after the current schedule when its input
ends.
"""

import gc
import json
import logging
import math
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import benchmarks.django_setup  # noqa: F401
from benchmarks.crashes.crash_points import CrashPoint, Fault, Moment
from benchmarks.crashes.kinds import KINDS
from benchmarks.crashes.player import Played, Player
from benchmarks.crashes.schedules import CrashSchedule, draw_schedules


def describe(played: Played) -> dict[str, Any]:
    """Return a result as plain data; of its events the number, and the one at which the fault happened."""
    point = played.point
    number = point.number if point else 0
    return {
        "kind": played.kind,
        "point": asdict(point) if point else None,
        "event": played.events[number - 1] if 0 < number <= len(played.events) else "",
        "events": len(played.events),
        "was_hit": played.was_hit,
        "violations": [asdict(violation) for violation in played.violations],
        "seconds": round(played.seconds, 3),
    }


def read_played(file: Path) -> set[CrashSchedule]:
    """Return the schedules of a file's lines; none if it does not exist."""
    if not file.exists():
        return set()
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    return {_read_schedule(line["kind"], **line["point"]) for line in lines if line["point"]}


def _read_schedule(kind: str, number: int, moment: str, fault: str) -> CrashSchedule:
    return CrashSchedule(kind, CrashPoint(number, Moment(moment), Fault(fault)))


def play_part(
    player: Player, draw: Callable[[Mapping[str, int]], Iterable[CrashSchedule]], stopped: threading.Event
) -> None:
    """Play each kind without a crash, then a part of the schedules; print a line for each.

    Args:
        player: plays the schedules.
        draw: returns the schedules; called with the number of events of each kind without a crash.
        stopped: set to stop after the current schedule.
    """
    counts: dict[str, int] = {}
    for kind in KINDS:
        played = player.play(kind)
        counts[kind] = len(played.events)
        print(json.dumps(describe(played)), flush=True)
    for schedule in draw(counts):
        if stopped.is_set():
            return
        print(json.dumps(describe(player.play(schedule.kind, schedule.point))), flush=True)


def main() -> None:
    seed, part, parts, schedules = map(int, sys.argv[1:5])
    played_before = read_played(Path(sys.argv[5]))
    logging.disable(logging.CRITICAL)
    stopped = threading.Event()

    def wait_for_end_of_input() -> None:
        sys.stdin.read()
        stopped.set()

    def draw(counts: Mapping[str, int]) -> list[CrashSchedule]:
        drawn = draw_schedules(counts, seed, part, parts)[: math.ceil(schedules / parts)]
        return [schedule for schedule in drawn if schedule not in played_before]

    threading.Thread(target=wait_for_end_of_input, daemon=True).start()
    gc.freeze()  # imported modules are never freed, so no collection needs to visit them
    with Player().running() as player:
        play_part(player, draw, stopped)


if __name__ == "__main__":
    main()
