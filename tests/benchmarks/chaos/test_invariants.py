"""Invariants of the chaos rounds: each is checked on rows that break it."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError

from benchmarks.chaos.invariants import WatchedRun, count_cells, find_violations, install_end_trigger
from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from toolbench.lab.models import Cell, CellTimes, Run, Trial
from toolbench.lab.worker.job_failures import count_failure

pytestmark = pytest.mark.django_db

END = datetime(2026, 11, 22, 12, tzinfo=UTC)


@dataclass(frozen=True)
class ValidRun:
    """A finished run of one cell with two trials that breaks no invariant."""

    run: Run
    cell: Cell
    trials: list[Trial]

    def find(self, *, sent: int | None = 2, poisoned: bool = False) -> set[str]:
        found = find_violations([WatchedRun(self.run.pk, sent, poisoned)])
        assert all(violation.run_id == self.run.pk for violation in found)
        return {violation.kind for violation in found}


@pytest.fixture
def valid_run() -> ValidRun:
    install_end_trigger()
    run = make_run(trial_count=2, request_cap=10, requests_reserved=2, finished_at=END)
    cell = make_cell(make_config(run))
    trials = [make_trial(cell, "running") for _ in range(2)]
    for trial in trials:
        trial.state, trial.outcome, trial.end, trial.requests = "done", "pass", "MODEL_FINISHED", 1
        trial.finished_at = END
        trial.save()
        make_step(trial)
    _recount()
    return ValidRun(run, cell, trials)


def _recount() -> None:
    Cell.objects.update(stale=True)
    recompute_stale_cells()


def _change_first_trial(**fields: Any) -> Callable[[ValidRun], None]:
    """Return a function that changes columns of the first trial and recounts its cell."""

    def change(valid_run: ValidRun) -> None:
        Trial.objects.filter(pk=valid_run.trials[0].pk).update(**fields)
        _recount()

    return change


def _change_run(**fields: Any) -> Callable[[ValidRun], None]:
    return lambda valid_run: _check_one_changed(Run.objects.update(**fields))


def _change_cell(**fields: Any) -> Callable[[ValidRun], None]:
    return lambda valid_run: _check_one_changed(Cell.objects.update(**fields))


def _check_one_changed(changed: int) -> None:
    assert changed == 1


def _delete_trial(valid_run: ValidRun) -> None:
    valid_run.trials[0].delete()
    _recount()


def _end_again(valid_run: ValidRun) -> None:
    _change_first_trial(state="running")(valid_run)
    _change_first_trial(state="done")(valid_run)


def _delete_step(valid_run: ValidRun) -> None:
    valid_run.trials[0].steps.get().delete()


def _overflow_tokens(valid_run: ValidRun) -> None:
    Trial.objects.update(input_tokens=2**63 - 1)


def _fail_a_job(_: ValidRun) -> None:
    count_failure("sweeping", ValueError("no"))


ERROR = {"outcome": "infra", "failure_class": "connection_failed"}
WAITING = {"state": "queued", "outcome": "", "end": ""}
BROKEN: dict[str, tuple[Callable[[ValidRun], None], set[str]]] = {
    "a trial is gone": (_delete_trial, {"lost"}),
    "a trial has no outcome": (_change_first_trial(outcome=""), {"lost", "doubled"}),
    "a trial keeps its lease": (_change_first_trial(lease=uuid.uuid4()), {"lost"}),
    "a trial ends again": (_end_again, {"doubled"}),
    "a trial changes its outcome": (_change_first_trial(outcome="fail"), {"doubled"}),
    "a trial ends again with its outcome": (_change_first_trial(finished_at=END + timedelta(1)), {"doubled"}),
    "a repeat is there twice": (_change_first_trial(index=2), {"doubled"}),
    "the run goes on": (_change_run(state="running"), {"stuck"}),
    "a cell stays stale": (_change_cell(stale=True), {"stuck", "cell"}),
    "a trial runs in a finished run": (_change_first_trial(state="running", outcome=""), {"stuck"}),
    "a trial waits in a finished run": (_change_first_trial(**WAITING), {"queued"}),
    "a pause has no reason": (_change_run(state="paused"), {"queued"}),
    "an innocent trial errs": (_change_first_trial(**ERROR), {"own error", "doubled"}),
    "more was sent than reserved": (_change_run(requests_reserved=1), {"limit"}),
    "more is reserved than allowed": (_change_run(request_cap=1), {"limit"}),
    "a step is missing": (_delete_step, {"steps", "cell"}),
    "a count is wrong": (_change_cell(passed=1), {"cell"}),
    "a sum is wrong": (_change_cell(input_tokens=7), {"cell"}),
    "a sum overflows": (_overflow_tokens, {"cell"}),
    "a job failed": (_fail_a_job, {"job failure"}),
    "a quantile is wrong": (_change_cell(p95_ms=7), {"cell"}),
    "stored times are wrong": (lambda valid_run: _check_one_changed(CellTimes.objects.update(longest_ms=7)), {"cell"}),
}


def test_find_violations_of_valid_run_is_empty(valid_run: ValidRun) -> None:
    assert valid_run.find() == set()


@pytest.mark.parametrize("name", BROKEN)
def test_find_violations_finds_each_broken_invariant(valid_run: ValidRun, name: str) -> None:
    break_it, kinds = BROKEN[name]

    break_it(valid_run)

    assert valid_run.find() == kinds


def test_find_violations_ignores_job_failure_of_lost_database(valid_run: ValidRun) -> None:
    count_failure("sweeping", OperationalError("the database is away"))

    assert valid_run.find() == set()


def test_find_violations_reports_job_failure_once(valid_run: ValidRun) -> None:
    _fail_a_job(valid_run)

    assert [valid_run.find(), valid_run.find()] == [{"job failure"}, set()]


def test_find_violations_ignores_errors_of_poisoned_run(valid_run: ValidRun) -> None:
    _change_first_trial(**ERROR)(valid_run)

    assert valid_run.find(poisoned=True) == {"doubled"}


def test_find_violations_finds_internal_errors_of_poisoned_run(valid_run: ValidRun) -> None:
    _change_first_trial(**ERROR)(valid_run)
    Trial.objects.update(failure_class="our_error")

    assert valid_run.find(poisoned=True) == {"doubled", "own error"}


def test_find_violations_allows_queued_trials_of_paused_run(valid_run: ValidRun) -> None:
    _change_first_trial(**WAITING)(valid_run)
    Run.objects.update(state="paused", stopped_reason="The limit of 10 requests is reached.")

    assert valid_run.find() == set()


def test_find_violations_does_not_change_cells(valid_run: ValidRun) -> None:
    Cell.objects.update(passed=1)

    valid_run.find()

    assert Cell.objects.get().passed == 1
    assert count_cells([valid_run.run.pk]) == 1
