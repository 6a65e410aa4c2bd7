"""Play schedules on the database of the environment; print a JSON line for each.

`python -m benchmarks.crashes.play SEED PART PARTS SCHEDULES FILE` is started by `python -m benchmarks.crashes`. It
plays every PARTS-th schedule that has no line in the file, until it is told to stop by the end of its input."""

import gc
import json
import logging
import sys
import threading
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

import benchmarks.django_setup  # noqa: F401
from benchmarks.crashes.crash_points import CrashPoint, Fault, Moment
from benchmarks.crashes.kinds import KINDS
from benchmarks.crashes.player import Played, Player
from benchmarks.crashes.schedules import draw_schedules


def describe(played: Played) -> dict[str, Any]:
    """Return a result as plain data; of the events only that at which the crash happened."""
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


def read_played(file: Path) -> set[tuple[str, CrashPoint]]:
    """Return the kinds and points of a file's lines; none if it does not exist."""
    if not file.exists():
        return set()
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    points = [(line["kind"], line["point"]) for line in lines if line["point"]]
    return {
        (kind, CrashPoint(point["number"], Moment(point["moment"]), Fault(point["fault"]))) for kind, point in points
    }


def play_part(
    player: Player, seed: int, part: slice, played_before: Collection[tuple[str, CrashPoint]], stopped: threading.Event
) -> None:
    """Play a part of the schedules. The first of its lines are those of each kind without a crash."""
    counts: dict[str, int] = {}
    for kind in KINDS:
        played = player.play(kind)
        counts[kind] = len(played.events)
        print(json.dumps(describe(played)), flush=True)
    for schedule in draw_schedules(counts, seed)[part]:
        if stopped.is_set():
            return
        if (schedule.kind, schedule.point) in played_before:
            continue
        print(json.dumps(describe(player.play(schedule.kind, schedule.point))), flush=True)


def main() -> None:
    seed, part, parts, schedules = map(int, sys.argv[1:5])
    played_before = read_played(Path(sys.argv[5]))
    logging.disable(logging.CRITICAL)
    stopped = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        stopped.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    gc.freeze()  # what the product has imported stays, so no collection need look at it
    with Player().running() as player:
        play_part(player, seed, slice(part, schedules, parts), played_before, stopped)


if __name__ == "__main__":
    main()
