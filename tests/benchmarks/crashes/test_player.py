import pytest

from benchmarks.crashes.crash_points import CrashPoint, Fault, Moment
from benchmarks.crashes.kinds import KINDS
from benchmarks.crashes.player import Player
from benchmarks.crashes.schedules import draw_schedules
from toolbench.lab.models import Probe

SEED, SCHEDULES = 20, 18  # of each kind


@pytest.mark.parametrize("kind", KINDS)
def test_play_of_drawn_schedules_finds_no_violation(player: Player, kind: str) -> None:
    whole = player.play(kind)
    drawn = draw_schedules({kind: len(whole.events)}, SEED)[:SCHEDULES]
    played = [player.play(schedule.kind, schedule.point) for schedule in drawn]
    assert [(result.point, result.violations) for result in (whole, *played) if result.violations] == []
    assert any(result.was_hit for result in played)


def test_play_repeats_the_same_events(player: Player) -> None:
    first, second = player.play("probe"), player.play("probe")
    assert first.events == second.events
    assert "request" in first.events
    assert "COMMIT" in first.events


def test_play_killed_process_stops_at_its_crash_point(player: Player) -> None:
    played = player.play("fixed", CrashPoint(20, Moment.BEFORE, Fault.KILL))
    assert played.was_hit
    assert len(played.events) <= 22  # its other thread may have begun a statement


def test_play_frozen_process_breaks_no_rule_after_resume(player: Player) -> None:
    played = player.play("resumed", CrashPoint(2, Moment.BEFORE, Fault.FREEZE))
    assert played.was_hit
    assert played.violations == ()


def test_play_probe_with_cut_answer_may_be_inconclusive(player: Player) -> None:
    first_request = player.play("probe").events.index("request") + 1
    played = player.play("probe", CrashPoint(first_request, Moment.AFTER, Fault.CUT))
    assert played.was_hit
    assert played.violations == ()
    assert Probe.objects.get().error == "answer_cut"
