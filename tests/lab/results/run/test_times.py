"""Durations and pace on the run page."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials, recompute_stale_cells
from toolbench.lab.models import Run
from toolbench.lab.results.run.page import get_run_page
from toolbench.lab.results.run.times import PACE_WINDOW, get_pace, measure_active_seconds

pytestmark = pytest.mark.django_db
STARTED_AT = timezone.now() - timedelta(hours=1)


def seconds_after_start(seconds: float) -> datetime:
    return STARTED_AT + timedelta(seconds=seconds)


def make_run_with_trials(spans: list[tuple[float, float]]) -> Run:
    run = make_run()
    cell = make_cell(make_config(run))
    for started, finished in spans:
        make_trial(cell, started_at=seconds_after_start(started), finished_at=seconds_after_start(finished))
    return run


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([(0, 60), (10, 20), (50, 90)], 90),  # side by side
        ([(0, 60), (600, 630)], 90),  # a later retry
        ([(0, 60), (5, 10), (30, 40), (100, 110)], 70),
        ([(0, 60), (0, 60)], 60),
        ([], None),
    ],
)
def test_measure_active_seconds_excludes_gaps_between_trials(
    spans: list[tuple[float, float]], seconds: float | None
) -> None:
    assert measure_active_seconds(make_run_with_trials(spans)) == seconds


def test_measure_active_seconds_ignores_trials_that_never_ran() -> None:
    run = make_run_with_trials([(0, 60)])
    make_trial(run.cells.get(), "cancelled", execution=0, started_at=None, finished_at=seconds_after_start(900))
    assert measure_active_seconds(run) == 60


def test_run_page_after_a_later_retry_has_both_durations() -> None:
    run = make_run_with_trials([(0, 180), (750, 780)])
    Run.objects.filter(pk=run.pk).update(
        created_at=seconds_after_start(0), finished_at=seconds_after_start(780), state=Run.State.FINISHED
    )
    page = get_run_page(run.pk)
    assert (page.active_seconds, page.total_seconds) == (210, 780)


def test_pace_window_is_the_observed_time() -> None:
    run = make_run(state=Run.State.RUNNING)
    cell = make_cell(make_config(run))
    for _ in range(4):
        make_trial(cell, started_at=timezone.now() - timedelta(seconds=5))
    recompute_stale_cells()
    pace = get_pace(run, get_run_page(run.pk).tally)
    assert pace.window_seconds is not None
    assert pace.per_minute is not None
    assert pace.window_seconds < PACE_WINDOW.total_seconds() / 2
    assert pace.per_minute == pytest.approx(60 * 4 / pace.window_seconds)


def test_pace_window_is_at_most_three_minutes() -> None:
    run = make_run(state=Run.State.RUNNING)
    cell = make_cell(make_config(run))
    for _ in range(2):
        make_trial(cell, started_at=timezone.now() - timedelta(hours=1))
    recompute_stale_cells()
    pace = get_pace(run, get_run_page(run.pk).tally)
    assert pace.window_seconds is not None
    assert pace.window_seconds == pytest.approx(PACE_WINDOW.total_seconds(), abs=1)


def test_run_page_tally_ended_excludes_cancelled_trials() -> None:
    run = make_run(state=Run.State.CANCELLED)
    make_trials(make_cell(make_config(run)), **{"pass": 2, "fail": 1, "cancelled": 4})
    tally = get_run_page(run.pk).tally
    assert (tally.ended_uncancelled, tally.cancelled, tally.trial_count) == (3, 4, 7)
