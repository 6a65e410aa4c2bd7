"""Coordinates of the scatter plot of a decision."""

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, recompute_stale_cells
from toolbench.lab.results.decide.page import get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.web.scatter import MAX_POINTS, Scatter, build_scatters

pytestmark = pytest.mark.django_db


def measure(name: str, passed: int, failed: int, ms: float) -> None:
    cell = make_cell(make_config(make_run(), make_model(name)))
    for number in range(passed + failed):
        make_trial(cell, "pass" if number < passed else "fail", duration_ms=ms + number)
    recompute_stale_cells()


def draw(within: str = "20", success: str = "90") -> Scatter:
    wide, narrow = build_scatters(get_decide_page(DecideQuery(want="fastest", within=within, success=success)))
    assert narrow.width < wide.width
    assert len(narrow.points) == len(wide.points)
    return wide


def test_build_scatters_puts_faster_left_and_better_above() -> None:
    measure("fast", 80, 0, 1000)
    measure("slow", 60, 20, 9000)
    fast, slow = draw().points
    assert (fast.row.candidate.model, fast.number, slow.number) == ("fast", "1", "2")
    assert fast.x < slow.x
    assert fast.y < slow.y
    for point in (fast, slow):
        assert point.left <= point.x <= point.right
        assert point.top <= point.y <= point.bottom


def test_build_scatters_draws_open_bound_to_edge() -> None:
    measure("few", 30, 0, 1000)
    drawing = draw()
    (point,) = drawing.points
    assert point.is_open
    assert point.right == drawing.right


def test_build_scatters_marks_area_within_target_and_limit() -> None:
    measure("one", 80, 0, 1000)
    near, far, none = draw(within="2"), draw(within="600"), draw(within="none")
    assert near.has_limit
    assert near.left < near.limit_x < near.right
    assert near.allowed_width == pytest.approx(near.limit_x - near.left)
    for drawing in (far, none):
        assert not drawing.has_limit
        assert drawing.limit_x == drawing.right
    assert draw(success="95").target_y < near.target_y


def test_build_scatters_stretches_success_axis_near_100_percent() -> None:
    measure("one", 80, 0, 1000)
    places = {tick.label: tick.at for tick in draw(success="60").success_ticks}
    assert places["98"] - places["100"] > places["80"] - places["90"] > 0


def test_build_scatters_draws_at_most_max_points() -> None:
    for number in range(MAX_POINTS + 2):
        measure(f"m{number}", 1, 0, 1000 + number)
    assert len(draw().points) == MAX_POINTS


def test_build_scatters_without_p95_is_empty() -> None:
    make_config(make_run(), make_model("none"))
    assert build_scatters(get_decide_page(DecideQuery())) == ()
