import json
from pathlib import Path

from benchmarks.crashes.crash_points import CrashPoint, Fault, Moment
from benchmarks.crashes.play import describe, read_played
from benchmarks.crashes.player import Played
from benchmarks.crashes.schedules import CrashSchedule


def test_read_played_returns_points_that_were_described(tmp_path: Path) -> None:
    point = CrashPoint(2, Moment.AFTER, Fault.FREEZE)
    whole, crashed = (Played("fixed", at, ("BEGIN", "COMMIT"), True, (), 0.5) for at in (None, point))
    file = tmp_path / "schedules.jsonl"
    assert read_played(file) == set()
    file.write_text("".join(f"{json.dumps(describe(played))}\n" for played in (whole, crashed)))
    assert read_played(file) == {CrashSchedule("fixed", point)}


def test_describe_names_event_of_crash() -> None:
    point = CrashPoint(2, Moment.BEFORE, Fault.KILL)
    played = Played("fixed", point, ("BEGIN", "COMMIT"), True, (), 0.5)
    assert describe(played)["event"] == "COMMIT"
