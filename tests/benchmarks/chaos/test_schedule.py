"""The schedule of chaos rounds is a function of its seed."""

from collections import Counter

from benchmarks.chaos.poison import POISON_BY_NAME
from benchmarks.chaos.schedule import (
    BEFORE_LAUNCH,
    DATABASE,
    FILL,
    FREEZE,
    KILL,
    PROCESSES,
    SUPERVISOR,
    Round,
    plan_round,
)

ROUNDS = 40


def rounds(seed: int = 1, count: int = ROUNDS, *, can_fill: bool = True) -> list[Round]:
    return [plan_round(seed, number, can_fill=can_fill) for number in range(1, count + 1)]


def test_schedule_of_equal_seeds_is_equal() -> None:
    assert rounds(7) == rounds(7)
    assert rounds(7) != rounds(8)


def test_schedule_of_forty_rounds_hits_every_process() -> None:
    hit = Counter((fault.kind, fault.target) for planned in rounds() for fault in planned.faults)

    assert {target for kind, target in hit if kind == KILL} == set(PROCESSES)
    assert {target for kind, target in hit if kind == FREEZE} == {*PROCESSES, DATABASE, SUPERVISOR}
    assert {target for kind, target in hit if kind == FILL} == {"data", "wal"}


def test_schedule_of_sixty_rounds_gives_every_poison() -> None:
    assert {planned.poison for planned in rounds(count=2 * len(POISON_BY_NAME))} == {"", *POISON_BY_NAME}


def test_schedule_without_namespace_fills_no_disk() -> None:
    assert not any(fault.kind == FILL for planned in rounds(can_fill=False) for fault in planned.faults)


def test_schedule_begins_before_launch_only_where_launch_can_work() -> None:
    early = {fault.target for planned in rounds(count=300) for fault in planned.faults if fault.at < 0}

    assert early == set(BEFORE_LAUNCH)


def test_schedule_has_double_faults_on_two_targets() -> None:
    doubles = [planned.faults for planned in rounds(count=100) if len(planned.faults) == 2]

    assert doubles
    assert all(item.target != other.target for item, other in doubles)
