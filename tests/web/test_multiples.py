import pytest

from tests.factories import make_cell, make_config, make_run, make_trials
from tests.lab.schedules.scheduled import add_run, make_schedule
from toolbench.lab.models import Cell, Schedule
from toolbench.lab.schedules.trend import get_trend_page
from toolbench.web.multiples import Multiple, build_multiples

pytestmark = pytest.mark.django_db


def draw(schedule: Schedule, measure: str = "success") -> tuple[Multiple, ...]:
    return build_multiples(get_trend_page(schedule.pk, measure))


def test_build_multiples_draws_success_from_0_to_100() -> None:
    schedule = make_schedule()
    add_run(schedule, (20, 0))
    add_run(schedule, (0, 20))
    (drawing,) = draw(schedule)
    assert [(line.label, line.y) for line in drawing.grid] == [("100", 12.0), ("50", 50.0), ("0", 88.0)]
    assert [(dot.x, dot.y) for dot in drawing.dots] == [(34.0, 12.0), (302.0, 88.0)]
    assert drawing.paths == ("34.0,12.0 302.0,88.0",)
    assert len(drawing.band.split()) == 4
    assert drawing.dots[0].title.endswith(": 20/20 (100 %, 84 to 100)")


def test_build_multiples_of_single_run_draws_dot_without_line() -> None:
    schedule = make_schedule()
    add_run(schedule, (5, 5))
    (drawing,) = draw(schedule)
    assert (drawing.dots[0].x, drawing.paths, drawing.band, drawing.last_day) == (168.0, (), "", "")


def test_build_multiples_leaves_gap_for_run_without_answer() -> None:
    schedule = make_schedule()
    for _ in range(2):
        add_run(schedule, (5, 0))
    make_trials(
        make_cell(make_config(make_run(schedule=schedule), add_run(schedule, (1, 1)).configs.get().model)), infra=5
    )
    for _ in range(2):
        add_run(schedule, (5, 0))
    (drawing,) = draw(schedule)
    assert (len(drawing.dots), len(drawing.paths)) == (5, 2)


@pytest.mark.parametrize(
    ("cost", "top"),
    [(0.00003, "0.00005"), (0.03, "0.05"), (0.1, "0.1"), (7.0, "10"), (0.0, "1"), (1234567.0, "2,000,000")],
)
def test_build_multiples_axis_of_cost_ends_at_round_number(cost: float, top: str) -> None:
    schedule = make_schedule()
    add_run(schedule, (5, 0))
    Cell.objects.update(cost=cost)
    (drawing,) = draw(schedule, "cost")
    assert drawing.grid[0].label == top
    assert drawing.target_y is None


def test_build_multiples_without_known_cost_draws_no_dot() -> None:
    schedule = make_schedule()
    add_run(schedule, (5, 0))
    (drawing,) = draw(schedule, "cost")
    assert (drawing.dots, drawing.band, drawing.paths) == ((), "", ())
