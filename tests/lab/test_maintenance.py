from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_step, make_trial
from tests.lab.conftest import RunInThread
from tests.lab.scripted_runs import launch_run
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
from toolbench.lab.runs.control import retry_errored_trials
from toolbench.lab.worker.claims import MAX_LEASE_LOSSES, claim
from toolbench.lab.worker.completion import finish_runs
from toolbench.lab.worker.storage import Batch, StepWrite, write_batch
from toolbench.providers.driver.step_records import ToolStep

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = timedelta(days=30)


def make_running_cell(state: str = Run.State.RUNNING, **fields: object) -> Cell:
    return make_cell(make_config(make_run(state=state, **fields)))


def make_lost_trial(cell: Cell) -> Trial:
    return make_trial(cell, "running", lease=uuid4(), lease_until=timezone.now() - timedelta(seconds=1), execution=2)


def test_sweep_requeues_lost_trial_and_keeps_its_steps() -> None:
    trial = make_lost_trial(make_running_cell())
    Trial.objects.update(queued_at=timezone.now() - LONG_AGO)
    make_step(trial)
    assert sweep().expired == 1
    trial.refresh_from_db()
    assert (trial.state, trial.lease, trial.execution, trial.steps.count()) == ("queued", None, 2, 1)
    assert timezone.now() - trial.queued_at < LONG_AGO / 2
    assert Cell.objects.get(pk=trial.cell_id).queued == 1


def test_sweep_counts_lost_leases_of_trials_with_slot() -> None:
    cell = make_running_cell()
    executed, waiting = make_lost_trial(cell), make_lost_trial(cell)
    Trial.objects.filter(pk=waiting.pk).update(backing_off=True)
    sweep()
    executed.refresh_from_db()
    waiting.refresh_from_db()
    assert (executed.lease_losses, waiting.lease_losses) == (1, 0)


def test_sweep_ends_trial_that_lost_too_many_leases_until_retried() -> None:
    trial = make_lost_trial(make_running_cell())
    Trial.objects.filter(pk=trial.pk).update(lease_losses=MAX_LEASE_LOSSES - 1)
    assert sweep().expired == 1
    trial.refresh_from_db()
    assert (trial.state, trial.outcome, trial.failure_class, trial.cause) == ("done", "infra", "our_error", "our_error")
    assert (trial.run.state, Cell.objects.get().infra) == (Run.State.FINISHED, 1)
    assert "lost its worker 10 times" in trial.sentence
    retry_errored_trials(trial.run_id, confirmed_requests=100)
    trial.refresh_from_db()
    assert (trial.state, trial.lease_losses, trial.sentence) == ("queued", 0, "")


def test_sweep_ends_only_the_trial_that_kills_its_worker() -> None:
    """Execute trials of two providers in one worker, which dies whenever it executes the first trial of one of them."""
    providers = [make_provider(f"Provider {number}", concurrency=3) for number in range(2)]
    runs = [launch_run(make_model(provider=provider), trials=4) for provider in providers]
    guilty = runs[0].trials.order_by("position")[0]
    for _ in range(40):
        claimed = [trial.id for provider in providers for trial in claim(provider.pk, limit=9, worker="w")]
        if guilty.pk in claimed:
            Trial.objects.filter(state="running").update(lease_until=timezone.now() - timedelta(seconds=1))
        else:
            Trial.objects.filter(pk__in=claimed).update(state="done", outcome="pass", lease=None)
        sweep()
    assert list(Trial.objects.exclude(outcome="pass").values_list("pk", "execution")) == [(guilty.pk, MAX_LEASE_LOSSES)]


def test_sweep_leaves_trial_with_valid_lease() -> None:
    trial = make_trial(make_running_cell(), "running", lease=uuid4(), lease_until=timezone.now() + timedelta(minutes=1))
    assert sweep().expired == 0
    trial.refresh_from_db()
    assert trial.state == "running"


def build_tool_step() -> ToolStep:
    call = ToolCall("c1", "state_get", "{}")
    result = ToolResult(call, {}, "ok", Envelope(True, "state_get"), content="{}", was_executed=True)
    return ToolStep(1, 0, 9.0, 0.5, result)


def test_sweep_skips_trial_whose_steps_are_being_stored(elsewhere: RunInThread) -> None:
    trial = make_lost_trial(make_running_cell())
    assert trial.lease
    with transaction.atomic():
        write_batch(Batch([StepWrite(trial.pk, trial.execution, trial.lease, build_tool_step())]))
        assert elsewhere(sweep).result().expired == 0
    assert sweep().expired == 1
    assert trial.steps.count() == 1


def test_sweep_ends_lost_trial_of_cancelled_run_as_cancelled() -> None:
    trial = make_lost_trial(make_running_cell(Run.State.CANCELLING))
    sweep()
    trial.refresh_from_db()
    assert (trial.outcome, trial.run.state) == ("cancelled", Run.State.CANCELLED)


def test_sweep_ends_trial_of_deleted_provider_as_infra() -> None:
    cell = make_running_cell()
    trial = make_trial(cell, "queued", provider=None)
    assert sweep().ended == 1
    trial.refresh_from_db()
    assert (trial.outcome, trial.failure_class) == ("infra", "provider_deleted")
    assert trial.sentence == "The provider was deleted before this trial began."


@pytest.mark.parametrize(
    ("before", "after"),
    [("running", "finished"), ("paused", "finished"), ("cancelling", "cancelled"), ("cancelled", "cancelled")],
)
def test_sweep_ends_run_without_open_trials(before: str, after: str) -> None:
    cell = make_running_cell(before)
    make_trial(cell, "pass")
    sweep()
    run = Run.objects.get()
    assert run.state == after


def test_finish_runs_waits_until_every_trial_is_counted() -> None:
    cell = make_running_cell()
    make_trial(cell, "pass")
    mark_stale([cell.pk])
    assert finish_runs() == ()
    sweep()
    cell.refresh_from_db()
    assert (Run.objects.get().state, cell.passed) == (Run.State.FINISHED, 1)


def test_sweep_leaves_run_with_open_trials_running() -> None:
    cell = make_running_cell()
    make_trial(cell, "pass")
    make_trial(cell, "queued")
    assert sweep().finished == 0
    assert Run.objects.get().state == Run.State.RUNNING


def test_sweep_notifies_workers_of_providers_with_queued_trials() -> None:
    waiting, paused = make_running_cell(), make_running_cell(Run.State.PAUSED)
    make_trial(waiting, "queued")
    make_trial(paused, "queued")
    assert sweep().notified == list_waiting_providers() == (waiting.config.provider_id,)


def test_sweep_deletes_old_links_and_processes() -> None:
    SignInLink.objects.create(user=get_first_owner(), token_hash="a", expires_at=timezone.now() - LONG_AGO)
    SignInLink.objects.create(user=get_first_owner(), token_hash="b", expires_at=timezone.now())
    Process.objects.create(name="old", kind="worker", host="h", pid=1, seen_at=timezone.now() - LONG_AGO)
    sweep()
    assert list(SignInLink.objects.values_list("token_hash", flat=True)) == ["b"]
    assert not Process.objects.exists()


def test_sweep_in_parallel_requeues_each_trial_once(elsewhere: RunInThread) -> None:
    cell = make_running_cell()
    trials = [make_lost_trial(cell) for _ in range(20)]
    swept = [future.result(timeout=30) for future in [elsewhere(sweep) for _ in range(6)]]
    sweep()
    assert sum(result.expired for result in swept) == len(trials)
    assert Cell.objects.get(pk=cell.pk).queued == 20


def test_check_runs_returns_cancelled_and_deleted_runs() -> None:
    cells = [make_running_cell(state) for state in ("running", "paused", "cancelling", "cancelled")]
    for cell in cells:
        make_trial(cell, "running")
    ids = [cell.run_id for cell in cells]
    assert set(check_runs([*ids, 987654])) == {ids[2], ids[3], 987654}


def fail(verb: object = None) -> None:
    raise KeyError("injected")


def replace_action(steps: tuple[MaintenanceStep, ...], job: str) -> tuple[MaintenanceStep, ...]:
    return tuple(replace(step, action=fail) if step.job == job else step for step in steps)


def list_failed_jobs() -> list[tuple[str, str]]:
    return list(JobFailure.objects.values_list("job", "error"))


@pytest.mark.parametrize("job", [step.job for step in SWEEP_STEPS])
def test_sweep_with_failing_step_runs_the_others(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lost, orphan, done = (
        make_lost_trial(make_running_cell()),
        make_trial(make_running_cell(), "queued", provider=None),
        make_running_cell(),
    )
    cancelled = make_trial(make_running_cell(Run.State.CANCELLING), "queued")
    make_trial(done, "pass")
    SignInLink.objects.create(user=get_first_owner(), token_hash="a", expires_at=timezone.now() - LONG_AGO)
    monkeypatch.setattr(maintenance, "SWEEP_STEPS", replace_action(SWEEP_STEPS, job))
    swept = sweep()
    done.refresh_from_db()
    for trial in (lost, orphan, cancelled):
        trial.refresh_from_db()
    done_by_job = {
        "requeueing lost trials": lost.state == "queued",
        "ending cancelled trials": cancelled.outcome == "cancelled",
        "ending trials of deleted providers": orphan.outcome == "infra",
        "recomputing cells": done.passed == 1,
        "finishing runs": done.run.state == Run.State.FINISHED,
        "deleting old rows": not SignInLink.objects.exists(),
        "notifying workers of trials": bool(swept.notified),
    }
    dependent_jobs = {"requeueing lost trials": "notifying workers of trials", "recomputing cells": "finishing runs"}
    assert {name for name, is_done in done_by_job.items() if not is_done} <= {job, dependent_jobs.get(job)}
    assert list_failed_jobs() == [(job, "KeyError")]


@pytest.mark.parametrize("job", [step.job for step in CHECK_STEPS])
def test_check_runs_with_failing_step_runs_the_others(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done, cancelling = make_running_cell(), make_running_cell(Run.State.CANCELLING)
    make_trial(done, "pass")
    make_trial(cancelling, "queued")
    monkeypatch.setattr(maintenance, "CHECK_STEPS", replace_action(CHECK_STEPS, job))
    assert check_runs([cancelling.run_id]) == (cancelling.run_id,)
    done.refresh_from_db()
    assert done.passed == (job != "recomputing cells")
    assert (done.run.state == Run.State.FINISHED) == (job not in ("recomputing cells", "finishing runs"))
    assert list_failed_jobs() == [(job, "KeyError")]


def test_check_runs_with_failing_query_still_recomputes(monkeypatch: pytest.MonkeyPatch) -> None:
    done = make_running_cell()
    make_trial(done, "pass")
    monkeypatch.setattr(maintenance, "_find_cancelled_runs", fail)
    assert check_runs([done.run_id]) == ()
    done.refresh_from_db()
    assert (done.passed, list_failed_jobs()) == (1, [("finding cancelled runs", "KeyError")])


def test_sweep_without_counts_requeues_and_leaves_cells_stale() -> None:
    trial = make_lost_trial(make_running_cell())
    assert (sweep(with_counts=False).expired, check_runs([], with_counts=False)) == (1, ())
    assert Cell.objects.get(pk=trial.cell_id).stale
    check_runs([])
    assert not Cell.objects.get(pk=trial.cell_id).stale


def test_check_runs_without_counts_pauses_run_at_limit() -> None:
    cell = make_running_cell()
    make_trial(cell, "queued")
    Run.objects.filter(pk=cell.run_id).update(request_cap=1, requests_reserved=1)
    check_runs([cell.run_id], with_counts=False)
    assert Run.objects.get(pk=cell.run_id).state == Run.State.PAUSED
    assert Cell.objects.get(pk=cell.pk).stale
