from benchmarks.crashes.crash_points import Fault, Moment
from benchmarks.crashes.schedules import draw_schedules, list_schedules

COUNTS = {"fixed": 3, "probe": 1}


def test_schedules_have_every_fault_on_both_sides_of_every_event() -> None:
    schedules = list_schedules(COUNTS)
    assert len(set(schedules)) == len(schedules) == 4 * len(Moment) * len(Fault)
    assert {schedule.point.number for schedule in schedules if schedule.kind == "fixed"} == {1, 2, 3}


def test_drawn_schedules_are_all_of_them_in_the_order_of_a_seed() -> None:
    drawn = draw_schedules(COUNTS, 1)
    assert set(drawn) == set(list_schedules(COUNTS))
    assert len(drawn) == len(list_schedules(COUNTS))
    assert drawn == draw_schedules(COUNTS, 1) != draw_schedules(COUNTS, 2)
    assert [schedule.kind for schedule in drawn[:4]] == ["fixed", "probe", "fixed", "probe"]


def test_parts_share_schedules_also_when_counts_differ() -> None:
    first, second = (set(draw_schedules(counts, 1, part, 2)) for part, counts in enumerate((COUNTS, {"fixed": 4})))
    whole = [set(draw_schedules(COUNTS, 1, part, 2)) for part in range(2)]
    assert first == whole[0]
    assert first & second == set()
    assert {schedule for schedule in whole[1] if schedule.kind == "fixed"} <= second
    assert first | whole[1] == set(list_schedules(COUNTS))
