from benchmarks.crashes.crash_points import Fault, Moment
from benchmarks.crashes.schedules import draw_schedules, list_schedules

COUNTS = {"fixed": 3, "probe": 1}


def test_list_schedules_has_every_fault_before_and_after_each_event() -> None:
    schedules = list_schedules(COUNTS)
    assert len(set(schedules)) == len(schedules) == 4 * len(Moment) * len(Fault)
    assert {schedule.point.number for schedule in schedules if schedule.kind == "fixed"} == {1, 2, 3}


def test_draw_schedules_orders_all_schedules_by_seed() -> None:
    drawn = draw_schedules(COUNTS, 1)
    assert set(drawn) == set(list_schedules(COUNTS))
    assert len(drawn) == len(list_schedules(COUNTS))
    assert drawn == draw_schedules(COUNTS, 1) != draw_schedules(COUNTS, 2)
    assert [schedule.kind for schedule in drawn[:4]] == ["fixed", "probe", "fixed", "probe"]


def test_draw_schedules_parts_are_disjoint_and_complete() -> None:
    first, second = (set(draw_schedules(counts, 1, part, 2)) for part, counts in enumerate((COUNTS, {"fixed": 4})))
    whole = [set(draw_schedules(COUNTS, 1, part, 2)) for part in range(2)]
    assert first == whole[0]
    assert first & second == set()
    assert {schedule for schedule in whole[1] if schedule.kind == "fixed"} <= second
    assert first | whole[1] == set(list_schedules(COUNTS))
