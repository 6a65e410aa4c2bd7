"""Resuming a cancelled run, which queues only its cancelled planned trials."""

from typing import Any

import pytest

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_step, make_trial
from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from toolbench.lab.metrics.cells import recompute
from toolbench.lab.models import Cell, Run, Step, StepBody, Trial
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.runs import control
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


def make_cancelled_cell(**fields: Any) -> Cell:
    return make_cell(make_config(make_run(state=Run.State.CANCELLED, stopped_reason="Cancelled.", **fields)))


def read_trials(cell: Cell) -> list[dict[str, Any]]:
    return [dict(row) for row in cell.trials.order_by("pk").values()]


def test_resume_cancelled_run_queues_exactly_planned_trials() -> None:
    cell = make_cancelled_cell()
    for outcome in ("pass", "fail", "infra", "na"):
        make_trial(cell, outcome)
    chosen = {make_trial(cell, "cancelled").pk, make_trial(cell, "cancelled", execution=0).pk}
    make_trial(cell, "cancelled", added_by_hand=True)
    make_trial(cell, "cancelled", provider=None)
    kept = [row for row in read_trials(cell) if row["id"] not in chosen]

    assert control.resume_cancelled_run(cell.run_id) == 2
    assert {row["id"] for row in read_trials(cell) if row["state"] == "queued"} == chosen
    assert [row for row in read_trials(cell) if row["id"] not in chosen] == kept
    run = Run.objects.get()
    assert (run.state, run.finished_at, run.stopped_reason) == (Run.State.RUNNING, None, "")


def test_resume_cancelled_run_counts_trials_neither_added_nor_retried() -> None:
    cell = make_cancelled_cell()
    make_trial(cell, "cancelled", errors_retried=1)
    make_trial(cell, "cancelled")
    control.resume_cancelled_run(cell.run_id)
    assert list(cell.trials.order_by("pk").values_list("added_by_hand", "errors_retried")) == [(False, 1), (False, 0)]
    cell.refresh_from_db()
    assert (cell.queued, cell.cancelled, cell.added_by_hand) == (2, 0, 0)


def test_resume_cancelled_run_keeps_counted_requests() -> None:
    cell = make_cancelled_cell(requests_reserved=7, tokens_used=900)
    stopped = make_trial(cell, "cancelled", requests=2, input_tokens=600)
    for ordinal in range(2):
        make_step(stopped, ordinal=ordinal, input_tokens=300)
    recompute([cell.pk])
    before = Cell.objects.get()
    control.resume_cancelled_run(cell.run_id)
    cell.refresh_from_db()
    assert (cell.requests, cell.input_tokens) == (before.requests, before.input_tokens) == (2, 600)
    assert Run.objects.values_list("requests_reserved", "tokens_used").get() == (7, 900)
    assert (stopped.steps.count(), Trial.objects.get().execution) == (2, 1), "of an earlier execution"


def test_resume_cancelled_run_finishes_in_new_executions(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=4)
    run.trials.filter(position__gte=2).update(state="done", outcome="cancelled", execution=1)
    run_worker_session(model)
    finished = list(run.trials.filter(position__lt=2).order_by("pk").values())
    bodies = list(StepBody.objects.order_by("pk").values())
    reserved = Run.objects.get().requests_reserved
    assert Run.objects.get().state == Run.State.FINISHED

    assert control.resume_cancelled_run(run.pk) == 2
    run_worker_session(model)
    assert Run.objects.get().state == Run.State.FINISHED
    assert set(run.trials.filter(position__gte=2).values_list("outcome", "execution")) == {("pass", 2)}
    assert set(Step.objects.filter(trial__position__gte=2).values_list("execution", flat=True)) == {2}
    assert list(run.trials.filter(position__lt=2).order_by("pk").values()) == finished
    assert list(StepBody.objects.order_by("pk").values())[: len(bodies)] == bodies
    assert Run.objects.get().requests_reserved > reserved


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (Run.State.RUNNING, "has not ended"),
        (Run.State.PAUSED, "has not ended"),
        (Run.State.CANCELLING, "has not ended"),
        (Run.State.FINISHED, "has no cancelled trial"),
    ],
)
def test_resume_cancelled_run_refuses_other_runs(state: Run.State, sentence: str) -> None:
    cell = make_cell(make_config(make_run(state=state)))
    make_trial(cell, "pass" if state == Run.State.FINISHED else "cancelled")
    with pytest.raises(RunActionError, match=sentence):
        control.resume_cancelled_run(cell.run_id)


def test_resume_cancelled_run_needs_confirmation_of_paid_requests() -> None:
    run = launch_run(make_model(provider=make_provider(max_attempts=2)), trials=300, overrides={"max_turns": 4})
    control.cancel_run(run.pk)
    with pytest.raises(PaidRequestsUnconfirmedError, match="up to 3,600 requests to Example"):
        control.resume_cancelled_run(run.pk, confirmed_requests=3599)
    assert not Trial.objects.filter(state="queued").exists()
    assert control.resume_cancelled_run(run.pk, confirmed_requests=3600) == 300
