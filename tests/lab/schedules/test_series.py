from typing import Any

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.lab.schedules.scheduled import add_run, make_schedule
from toolbench.lab.models import Run, Schedule
from toolbench.lab.schedules.series import load_series

pytestmark = pytest.mark.django_db


def pin(schedule: Schedule, *runs: Run) -> None:
    schedule.baseline_runs.set(runs)


def test_load_series_has_one_series_for_each_configuration() -> None:
    schedule = make_schedule()
    runs = [add_run(schedule, (4, 1), (2, 3)), add_run(schedule, (5, 0), (1, 4))]
    first, second = load_series(schedule)
    assert [point.run for point in first.points] == runs
    assert [(point.answered.k, point.answered.n) for point in second.points] == [(2, 5), (1, 5)]
    assert first.points[0].times.p50 is not None
    assert first.untested == "no baseline"
    assert first.key != second.key


def test_load_series_finds_drift_since_the_baseline() -> None:
    schedule = make_schedule()
    runs = [add_run(schedule, (20, 0), (20, 0)) for _ in range(3)]
    pin(schedule, runs[0])
    runs.append(add_run(schedule, (0, 20), (20, 0)))
    first, second = load_series(schedule)
    assert first.drift is not None
    assert (first.drift.detected_index, first.drift_start) == (2, runs[3])
    assert (second.drift, second.untested) == (None, "")


def test_load_series_excludes_cancelled_deleted_and_foreign_runs() -> None:
    schedule = make_schedule()
    add_run(schedule, (5, 0), state="cancelled")
    add_run(schedule, (5, 0), deleted_at="2026-01-01T00:00Z")
    add_run(make_schedule(), (5, 0))
    assert load_series(schedule) == ()


def test_load_series_includes_a_pinned_run_of_another_kind() -> None:
    schedule = make_schedule()
    source = make_run()
    make_trials(make_cell(make_config(source, make_model("vendor/model-0"))), **{"pass": 5})
    pin(schedule, source)
    add_run(schedule, (5, 0))
    (series,) = load_series(schedule)
    assert (len(series.baseline), len(series.since), len(series.points)) == (1, 1, 2)


@pytest.mark.parametrize(
    ("fields", "reason"), [({"error": 0.05}, "sequential"), ({"deterministic": True}, "temperature 0")]
)
def test_load_series_without_independent_trials_is_not_tested(fields: dict[str, Any], reason: str) -> None:
    schedule = make_schedule()
    run = add_run(schedule, (5, 0), cell=fields)
    run.trials.update(answer_hash="same")
    run.cells.update(repeated_answers=4)
    pin(schedule, run)
    add_run(schedule, (0, 20), cell=fields)
    (series,) = load_series(schedule)
    assert reason in series.untested
    assert series.drift is None


def test_load_series_tests_at_most_max_tested_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolbench.lab.schedules.series.MAX_TESTED_RUNS", 2)
    schedule = make_schedule()
    pin(schedule, add_run(schedule, (20, 0)))
    for counts in ((20, 0), (20, 0), (0, 20)):
        add_run(schedule, counts)
    (series,) = load_series(schedule)
    assert (len(series.since), series.drift) == (2, None)
    assert series.untested == "more than 2 runs since the baseline; pin newer runs as the baseline"
