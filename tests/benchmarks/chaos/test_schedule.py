"""Schedule of chaos rounds, planned from a seed."""

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


def plan_rounds(seed: int = 1, count: int = ROUNDS, *, can_fill: bool = True) -> list[Round]:
    return [plan_round(seed, number, can_fill=can_fill) for number in range(1, count + 1)]


def test_plan_round_is_repeatable_by_seed() -> None:
    assert plan_rounds(7) == plan_rounds(7)
    assert plan_rounds(7) != plan_rounds(8)


def test_plan_round_hits_every_process_in_40_rounds() -> None:
    hit = Counter((fault.kind, fault.target) for planned in plan_rounds() for fault in planned.faults)

    assert {target for kind, target in hit if kind == KILL} == set(PROCESSES)
    assert {target for kind, target in hit if kind == FREEZE} == {*PROCESSES, DATABASE, SUPERVISOR}
    assert {target for kind, target in hit if kind == FILL} == {"data", "wal"}


def test_plan_round_gives_every_poison_in_two_cycles() -> None:
    assert {planned.poison for planned in plan_rounds(count=2 * len(POISON_BY_NAME))} == {"", *POISON_BY_NAME}


def test_plan_round_without_namespace_fills_no_disk() -> None:
    assert not any(fault.kind == FILL for planned in plan_rounds(can_fill=False) for fault in planned.faults)


def test_plan_round_starts_faults_before_launch_only_if_allowed() -> None:
    early = {fault.target for planned in plan_rounds(count=300) for fault in planned.faults if fault.at < 0}

    assert early == set(BEFORE_LAUNCH)


def test_plan_round_puts_double_faults_on_two_targets() -> None:
    doubles = [planned.faults for planned in plan_rounds(count=100) if len(planned.faults) == 2]

    assert doubles
    assert all(item.target != other.target for item, other in doubles)
