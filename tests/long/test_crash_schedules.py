"""200 crashes of workers, probes and scheduler, more than the suite has time for."""

import pytest

from benchmarks.crashes.kinds import KINDS
from benchmarks.crashes.player import Player
from benchmarks.crashes.schedules import draw_schedules

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

SEED, SCHEDULES = 21, 200


def test_schedules_drawn_by_seed_break_no_rule() -> None:
    with Player().running() as player:
        events = {kind: len(player.play(kind).events) for kind in KINDS}
        drawn = draw_schedules(events, SEED)[:SCHEDULES]
        played = [player.play(schedule.kind, schedule.point) for schedule in drawn]
    found = [(result.kind, result.point, result.violations) for result in played if result.violations]
    assert found == []
    assert sum(result.was_hit for result in played) >= SCHEDULES * 0.9
