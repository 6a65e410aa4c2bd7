from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from tests.lab.conftest import RunInThread
from toolbench.engine.events import ToolResult
from toolbench.engine.types import Envelope, ToolCall
from toolbench.lab import maintenance
from toolbench.lab.accounts.sign_in import get_first_owner
from toolbench.lab.maintenance import (
    CHECK_STEPS,
    SWEEP_STEPS,
    MaintenanceStep,
    check_runs,
    list_waiting_providers,
    sweep,
)
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.models import Cell, JobFailure, Process, Run, SignInLink, Trial
from toolbench.lab.worker.completion import finish_runs
from toolbench.lab.worker.storage import Batch, StepWrite, write_batch
from toolbench.providers.driver.step_records import ToolStep

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = timedelta(days=30)


def a_cell(state: str = Run.State.RUNNING, **fields: object) -> Cell:
    return make_cell(make_config(make_run(state=state, **fields)))


def lost_trial(cell: Cell) -> Trial:
    return make_trial(cell, "running", lease=uuid4(), lease_until=timezone.now() - timedelta(seconds=1), execution=2)


def test_a_lost_trial_is_queued_again_and_its_steps_stay() -> None:
    trial = lost_trial(a_cell())
    make_step(trial)
    assert sweep().expired == 1
    trial.refresh_from_db()
    assert (trial.state, trial.lease, trial.execution, trial.steps.count()) == ("queued", None, 2, 1)
    assert Cell.objects.get(pk=trial.cell_id).queued == 1


def test_a_lease_that_holds_is_left_alone() -> None:
    trial = make_trial(a_cell(), "running", lease=uuid4(), lease_until=timezone.now() + timedelta(minutes=1))
    assert sweep().expired == 0
    trial.refresh_from_db()
    assert trial.state == "running"


def tool_step() -> ToolStep:
    call = ToolCall("c1", "state_get", "{}")
    result = ToolResult(call, {}, "ok", Envelope(True, "state_get"), content="{}", was_executed=True)
    return ToolStep(1, 0, 9.0, 0.5, result)


def test_trial_whose_steps_are_being_stored_is_queued_by_the_next_sweep(elsewhere: RunInThread) -> None:
    trial = lost_trial(a_cell())
    assert trial.lease
    with transaction.atomic():
        write_batch(Batch([StepWrite(trial.pk, trial.execution, trial.lease, tool_step())]))
        assert elsewhere(sweep).result().expired == 0
    assert sweep().expired == 1
    assert trial.steps.count() == 1


def test_a_lost_trial_of_a_cancelled_run_ends_cancelled() -> None:
    trial = lost_trial(a_cell(Run.State.CANCELLING))
    sweep()
    trial.refresh_from_db()
    assert (trial.outcome, trial.run.state) == ("cancelled", Run.State.CANCELLED)


def test_a_trial_whose_provider_is_gone_ends_as_infrastructure() -> None:
    cell = a_cell()
    trial = make_trial(cell, "queued", provider=None)
    assert sweep().ended == 1
    trial.refresh_from_db()
    assert (trial.outcome, trial.failure_class) == ("infra", "provider_deleted")
    assert trial.sentence == "The provider was deleted before this trial began."


@pytest.mark.parametrize(
    ("before", "after"),
    [("running", "finished"), ("paused", "finished"), ("cancelling", "cancelled"), ("cancelled", "cancelled")],
)
def test_a_run_without_open_trials_ends(before: str, after: str) -> None:
    cell = a_cell(before)
    make_trial(cell, "pass")
    sweep()
    run = Run.objects.get()
    assert run.state == after


def test_a_run_ends_only_with_every_trial_counted() -> None:
    cell = a_cell()
    make_trial(cell, "pass")
    mark_stale([cell.pk])
    assert finish_runs() == ()
    sweep()
    cell.refresh_from_db()
    assert (Run.objects.get().state, cell.passed) == (Run.State.FINISHED, 1)


def test_a_run_with_open_trials_goes_on() -> None:
    cell = a_cell()
    make_trial(cell, "pass")
    make_trial(cell, "queued")
    assert sweep().finished == 0
    assert Run.objects.get().state == Run.State.RUNNING


def test_providers_with_work_are_woken_again() -> None:
    waiting, paused = a_cell(), a_cell(Run.State.PAUSED)
    make_trial(waiting, "queued")
    make_trial(paused, "queued")
    assert sweep().notified == list_waiting_providers() == (waiting.config.provider_id,)


def test_old_links_and_dead_processes_are_forgotten() -> None:
    SignInLink.objects.create(user=get_first_owner(), token_hash="a", expires_at=timezone.now() - LONG_AGO)
    SignInLink.objects.create(user=get_first_owner(), token_hash="b", expires_at=timezone.now())
    Process.objects.create(name="old", kind="worker", host="h", pid=1, seen_at=timezone.now() - LONG_AGO)
    sweep()
    assert list(SignInLink.objects.values_list("token_hash", flat=True)) == ["b"]
    assert not Process.objects.exists()


def test_sweeps_at_once_do_no_harm(elsewhere: RunInThread) -> None:
    cell = a_cell()
    trials = [lost_trial(cell) for _ in range(20)]
    swept = [future.result(timeout=30) for future in [elsewhere(sweep) for _ in range(6)]]
    sweep()
    assert sum(each.expired for each in swept) == len(trials)
    assert Cell.objects.get(pk=cell.pk).queued == 20


def test_a_shift_hears_which_of_its_runs_are_cancelled_or_gone() -> None:
    cells = [a_cell(state) for state in ("running", "paused", "cancelling", "cancelled")]
    for cell in cells:
        make_trial(cell, "running")
    ids = [cell.run_id for cell in cells]
    assert set(check_runs([*ids, 987654])) == {ids[2], ids[3], 987654}


def breaks(verb: object = None) -> None:
    raise KeyError("injected")


def broken(parts: tuple[MaintenanceStep, ...], job: str) -> tuple[MaintenanceStep, ...]:
    return tuple(replace(part, action=breaks) if part.job == job else part for part in parts)


def failed_jobs() -> list[tuple[str, str]]:
    return list(JobFailure.objects.values_list("job", "error"))


@pytest.mark.parametrize("job", [part.job for part in SWEEP_STEPS])
def test_part_of_a_sweep_that_fails_leaves_the_others(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lost, orphan, done = lost_trial(a_cell()), make_trial(a_cell(), "queued", provider=None), a_cell()
    cancelled = make_trial(a_cell(Run.State.CANCELLING), "queued")
    make_trial(done, "pass")
    SignInLink.objects.create(user=get_first_owner(), token_hash="a", expires_at=timezone.now() - LONG_AGO)
    monkeypatch.setattr(maintenance, "SWEEP_STEPS", broken(SWEEP_STEPS, job))
    swept = sweep()
    done.refresh_from_db()
    for trial in (lost, orphan, cancelled):
        trial.refresh_from_db()
    seen = {
        "requeueing lost trials": lost.state == "queued",
        "ending cancelled trials": cancelled.outcome == "cancelled",
        "ending trials of deleted providers": orphan.outcome == "infra",
        "recomputing cells": done.passed == 1,
        "finishing runs": done.run.state == Run.State.FINISHED,
        "deleting old rows": not SignInLink.objects.exists(),
        "notifying workers of trials": bool(swept.notified),
    }
    needs = {"requeueing lost trials": "notifying workers of trials", "recomputing cells": "finishing runs"}
    assert {name for name, holds in seen.items() if not holds} <= {job, needs.get(job)}
    assert failed_jobs() == [(job, "KeyError")]


@pytest.mark.parametrize("job", [part.job for part in CHECK_STEPS])
def test_part_of_a_look_that_fails_leaves_the_others(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done, cancelling = a_cell(), a_cell(Run.State.CANCELLING)
    make_trial(done, "pass")
    make_trial(cancelling, "queued")
    monkeypatch.setattr(maintenance, "CHECK_STEPS", broken(CHECK_STEPS, job))
    assert check_runs([cancelling.run_id]) == (cancelling.run_id,)
    done.refresh_from_db()
    assert done.passed == (job != "recomputing cells")
    assert (done.run.state == Run.State.FINISHED) == (job not in ("recomputing cells", "finishing runs"))
    assert failed_jobs() == [(job, "KeyError")]


def test_cancelled_runs_that_cannot_be_read_leave_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    done = a_cell()
    make_trial(done, "pass")
    monkeypatch.setattr(maintenance, "_find_cancelled_runs", breaks)
    assert check_runs([done.run_id]) == ()
    done.refresh_from_db()
    assert (done.passed, failed_jobs()) == (1, [("finding cancelled runs", "KeyError")])


def test_sweep_without_counts_leaves_stale_cells_and_requeues() -> None:
    trial = lost_trial(a_cell())
    assert (sweep(counts=False).expired, check_runs([], counts=False)) == (1, ())
    assert Cell.objects.get(pk=trial.cell_id).stale
    check_runs([])
    assert not Cell.objects.get(pk=trial.cell_id).stale


def test_check_without_counts_pauses_a_run_at_its_limit() -> None:
    cell = a_cell()
    make_trial(cell, "queued")
    Run.objects.filter(pk=cell.run_id).update(request_cap=1, requests_reserved=1)
    check_runs([cell.run_id], counts=False)
    assert Run.objects.get(pk=cell.run_id).state == Run.State.PAUSED
    assert Cell.objects.get(pk=cell.pk).stale
