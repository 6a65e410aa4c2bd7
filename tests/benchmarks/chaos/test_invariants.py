"""Every invariant of the chaos rounds finds its violation on rows that break it."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError

from benchmarks.chaos.invariants import WatchedRun, count_cells, find_violations, install_witness
from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from toolbench.lab.models import Cell, CellTimes, Run, Trial
from toolbench.lab.worker.job_failures import count_failure

pytestmark = pytest.mark.django_db

END = datetime(2026, 11, 22, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Sound:
    """A finished run of one cell with two trials, of which everything holds."""

    run: Run
    cell: Cell
    trials: list[Trial]

    def find(self, *, sent: int | None = 2, poisoned: bool = False) -> set[str]:
        found = find_violations([WatchedRun(self.run.pk, sent, poisoned)])
        assert all(violation.run_id == self.run.pk for violation in found)
        return {violation.kind for violation in found}


@pytest.fixture
def sound() -> Sound:
    install_witness()
    run = make_run(trial_count=2, request_cap=10, requests_reserved=2, finished_at=END)
    cell = make_cell(make_config(run))
    trials = [make_trial(cell, "running") for _ in range(2)]
    for trial in trials:
        trial.state, trial.outcome, trial.end, trial.requests = "done", "pass", "MODEL_FINISHED", 1
        trial.finished_at = END
        trial.save()
        make_step(trial)
    _recount()
    return Sound(run, cell, trials)


def _recount() -> None:
    Cell.objects.update(stale=True)
    recompute_stale_cells()


def _first_trial(**fields: Any) -> Callable[[Sound], None]:
    """Changes columns of the first trial and recounts its cell."""

    def change(sound: Sound) -> None:
        Trial.objects.filter(pk=sound.trials[0].pk).update(**fields)
        _recount()

    return change


def _run(**fields: Any) -> Callable[[Sound], None]:
    return lambda sound: _done(Run.objects.update(**fields))


def _cell(**fields: Any) -> Callable[[Sound], None]:
    return lambda sound: _done(Cell.objects.update(**fields))


def _done(changed: int) -> None:
    assert changed == 1


def _lose_a_trial(sound: Sound) -> None:
    sound.trials[0].delete()
    _recount()


def _end_again(sound: Sound) -> None:
    _first_trial(state="running")(sound)
    _first_trial(state="done")(sound)


def _lose_a_step(sound: Sound) -> None:
    sound.trials[0].steps.get().delete()


def _overflow(sound: Sound) -> None:
    Trial.objects.update(input_tokens=2**63 - 1)


def _fail_a_job(_: Sound) -> None:
    count_failure("sweeping", ValueError("no"))


ERROR = {"outcome": "infra", "failure_class": "connection_failed"}
WAITING = {"state": "queued", "outcome": "", "end": ""}
BROKEN: dict[str, tuple[Callable[[Sound], None], set[str]]] = {
    "a trial is gone": (_lose_a_trial, {"lost"}),
    "a trial has no outcome": (_first_trial(outcome=""), {"lost", "doubled"}),
    "a trial keeps its lease": (_first_trial(lease=uuid.uuid4()), {"lost"}),
    "a trial ends again": (_end_again, {"doubled"}),
    "a trial changes its outcome": (_first_trial(outcome="fail"), {"doubled"}),
    "a trial ends again with its outcome": (_first_trial(finished_at=END + timedelta(1)), {"doubled"}),
    "a repeat is there twice": (_first_trial(index=2), {"doubled"}),
    "the run goes on": (_run(state="running"), {"stuck"}),
    "a cell stays stale": (_cell(stale=True), {"stuck", "cell"}),
    "a trial runs in a finished run": (_first_trial(state="running", outcome=""), {"stuck"}),
    "a trial waits in a finished run": (_first_trial(**WAITING), {"queued"}),
    "a pause has no reason": (_run(state="paused"), {"queued"}),
    "an innocent trial errs": (_first_trial(**ERROR), {"own error", "doubled"}),
    "more was sent than reserved": (_run(requests_reserved=1), {"limit"}),
    "more is reserved than allowed": (_run(request_cap=1), {"limit"}),
    "a step is missing": (_lose_a_step, {"steps", "cell"}),
    "a count is wrong": (_cell(passed=1), {"cell"}),
    "a sum is wrong": (_cell(input_tokens=7), {"cell"}),
    "a sum overflows": (_overflow, {"cell"}),
    "a job failed": (_fail_a_job, {"job failure"}),
    "a quantile is wrong": (_cell(p95_ms=7), {"cell"}),
    "stored times are wrong": (lambda sound: _done(CellTimes.objects.update(longest_ms=7)), {"cell"}),
}


def test_invariants_hold_of_a_sound_run(sound: Sound) -> None:
    assert sound.find() == set()


@pytest.mark.parametrize("name", BROKEN)
def test_invariants_find(sound: Sound, name: str) -> None:
    break_it, kinds = BROKEN[name]

    break_it(sound)

    assert sound.find() == kinds


def test_invariants_excuse_a_job_that_met_no_database(sound: Sound) -> None:
    count_failure("sweeping", OperationalError("the database is away"))

    assert sound.find() == set()


def test_invariants_find_a_job_failure_once(sound: Sound) -> None:
    _fail_a_job(sound)

    assert [sound.find(), sound.find()] == [{"job failure"}, set()]


def test_invariants_excuse_errors_of_a_poisoned_run(sound: Sound) -> None:
    _first_trial(**ERROR)(sound)

    assert sound.find(poisoned=True) == {"doubled"}


def test_invariants_find_our_errors_in_a_poisoned_run(sound: Sound) -> None:
    _first_trial(**ERROR)(sound)
    Trial.objects.update(failure_class="our_error")

    assert sound.find(poisoned=True) == {"doubled", "own error"}


def test_invariants_allow_waiting_trials_in_a_run_paused_with_a_reason(sound: Sound) -> None:
    _first_trial(**WAITING)(sound)
    Run.objects.update(state="paused", stopped_reason="The limit of 10 requests is reached.")

    assert sound.find() == set()


def test_invariants_leave_the_cells_as_they_are(sound: Sound) -> None:
    Cell.objects.update(passed=1)

    sound.find()

    assert Cell.objects.get().passed == 1
    assert count_cells([sound.run.pk]) == 1
