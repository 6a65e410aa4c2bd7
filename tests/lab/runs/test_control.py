from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from tests.factories import (
    make_cell,
    make_config,
    make_model,
    make_provider,
    make_run,
    make_step,
    make_trial,
    make_trials,
)
from tests.lab.conftest import RunInThread, wait_for_blocked_sessions
from tests.lab.scripted_runs import launch_run
from toolbench.lab.maintenance import list_waiting_providers, sweep
from toolbench.lab.metrics.cells import mark_stale, recompute
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Cell, Model, Provider, Run, Step, Trial
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.results.matrix.query import MatrixQuery
from toolbench.lab.results.matrix.table import get_matrix
from toolbench.lab.results.run_choices import RETRIED
from toolbench.lab.runs import control
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.runs.repeat import resend_trial
from toolbench.lab.worker.claims import claim, has_queued_trials
from toolbench.lab.worker.completion import finish_runs

pytestmark = pytest.mark.django_db(transaction=True)

QUEUEING_ACTIONS: dict[str, Callable[[Cell], object]] = {
    "retry": lambda cell: control.retry_errored_trials(cell.run_id),
    "add": lambda cell: control.add_trials(cell.run_id, cell.pk, 1),
}


def test_cancel_run_ends_queued_trials_immediately() -> None:
    run = launch_run(make_model(), trials=4)
    control.cancel_run(run.pk)
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED
    assert set(run.trials.values_list("outcome", "task_pass")) == {("cancelled", None)}
    assert run.cells.get().cancelled == 4


def test_cancel_run_ends_run_with_stale_cell() -> None:
    cell = make_cell(make_config(make_run(state=Run.State.RUNNING)))
    make_trial(cell, "pass")
    mark_stale([cell.pk])
    control.cancel_run(cell.run_id)
    cell.refresh_from_db()
    assert (Run.objects.get().state, cell.passed, cell.stale) == (Run.State.CANCELLED, 1, False)


def test_cancel_run_waits_for_trials_in_flight() -> None:
    run = launch_run(make_model(), trials=4)
    run.trials.filter(position=0).update(state="running")
    control.cancel_run(run.pk)
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLING


def test_cancel_pause_and_resume_refuse_finished_run() -> None:
    run = make_run(title="Old")
    for change_state in (control.cancel_run, control.pause_run, control.resume_run):
        with pytest.raises(RunActionError, match="Old is not "):
            change_state(run.pk)


def test_pause_run_stores_reason_until_resume() -> None:
    run = launch_run(make_model())
    control.pause_run(run.pk, "lunch")
    run.refresh_from_db()
    assert (run.state, run.stopped_reason) == (Run.State.PAUSED, "lunch")
    control.resume_run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.stopped_reason) == (Run.State.RUNNING, "")


def test_retry_errored_trials_queues_exactly_errored_trials() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 2, "fail": 2, "infra": 3, "na": 1, "cancelled": 1})
    errored = set(cell.trials.filter(outcome="infra").values_list("pk", flat=True))
    paid = cell.trials.filter(outcome="infra")[0]
    make_step(paid, input_tokens=900, cost=0.5)
    assert control.retry_errored_trials(cell.run_id) == 3
    queued = cell.trials.filter(state="queued")
    assert set(queued.values_list("pk", flat=True)) == errored
    assert set(queued.values_list("outcome", "sentence", "duration_ms", "execution")) == {("", "", None, 1)}
    assert (Run.objects.get().state, Run.objects.get().finished_at) == (Run.State.RUNNING, None)
    assert Step.objects.count() == 1
    cell.refresh_from_db()
    assert (cell.queued, cell.infra, tally_cells([cell]).ended) == (3, 0, 6), "before anything else runs"
    others = 2 * 6  # two requests of each trial that is not retried
    assert (cell.requests, cell.cost) == (others + 1, None)  # the cost of the others is unknown
    assert cell.input_tokens == 400 * 6 + 900


def test_retry_errored_trials_pass_counts_in_answered_success_only() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 8, "infra": 2})
    control.retry_errored_trials(cell.run_id)
    cell.trials.filter(state="queued").update(state="done", outcome="pass")
    recompute([cell.pk])
    cell.refresh_from_db()
    counts = tally_cells([cell])
    answered_success, end_to_end_success = counts.compute_answered_success(), counts.compute_end_to_end_success()
    assert ((answered_success.k, answered_success.n), (end_to_end_success.k, end_to_end_success.n)) == (
        (10, 10),
        (8, 10),
    )
    assert counts.errors_retried == 2
    table = get_matrix(MatrixQuery(scope="real"))
    assert table.warnings == (f"{RETRIED} Their number: 2.",)


def test_retry_errored_trials_setup_error_counts_as_ordinary_trial() -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 7})
    for answered in (0, 0, 1):  # a key that is refused after an accepted request is an error of the endpoint
        make_trial(cell, "infra", failure_class="authentication_failed", answered_turns=answered)
    control.retry_errored_trials(cell.run_id)
    cell.trials.filter(state="queued").update(state="done", outcome="pass")
    recompute([cell.pk])
    cell.refresh_from_db()
    end_to_end_success = tally_cells([cell]).compute_end_to_end_success()
    assert (end_to_end_success.k, end_to_end_success.n) == (9, 10)


def test_retry_errored_trials_resets_columns_of_trial() -> None:
    cell = make_cell(make_config(make_run()))
    fields: dict[str, Any] = {
        "cause": "never_sent",
        "causes": [{"code": "x"}],
        "failed_calls": 3,
        "call_expected": True,
    }
    fields |= {"taxonomy": 2, "arguments_asked": 4, "seed_sent": True, "plan_hash": "h", "client_lag_ms": 9.0}
    tried = make_trial(cell, "infra", label="mine", note="kept", **fields)
    fresh = make_trial(cell, "queued")
    control.retry_errored_trials(cell.run_id)
    assert tried.queued_at < fresh.queued_at
    tried.refresh_from_db()
    assert tried.queued_at > fresh.queued_at
    differing = {f.name for f in Trial._meta.concrete_fields if getattr(tried, f.name) != getattr(fresh, f.name)}
    assert differing - {"id", "index", "block", "position", "instance_seed", "seed", "queued_at"} == {
        "execution", "errors_retried", "label", "note", "answer_hash"
    }  # fmt: skip
    assert tried.answer_hash == ""


def test_retry_errored_trials_without_errors_is_refused() -> None:
    cell = make_cell(make_config(make_run(title="Fine")))
    make_trial(cell, "pass")
    with pytest.raises(RunActionError, match="Fine has no trial with an infrastructure error"):
        control.retry_errored_trials(cell.run_id)


def test_retry_errored_trials_of_deleted_provider_is_refused() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "infra", provider=None)
    with pytest.raises(RunActionError):
        control.retry_errored_trials(cell.run_id)


def test_add_trials_marks_new_trials() -> None:
    run = launch_run(make_model(), trials=2)
    cell = run.cells.get()
    assert control.add_trials(cell.run_id, cell.pk, 3) == 3
    assert list(cell.trials.order_by("index").values_list("index", "added_by_hand")) == [
        (1, False), (2, False), (3, True), (4, True), (5, True),
    ]  # fmt: skip
    assert len(set(cell.trials.values_list("position", flat=True))) == 5
    assert len(set(cell.trials.values_list("seed", flat=True))) == 5
    run.refresh_from_db()
    assert (run.trial_count, Cell.objects.get().queued) == (5, 5)


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_add_trials_refuses_number_out_of_range(count: int) -> None:
    run = launch_run(make_model())
    with pytest.raises(RunActionError, match="Between 1 and 1000"):
        control.add_trials(run.pk, run.cells.get().pk, count)


def test_add_trials_refuses_unknown_cell_and_deleted_provider() -> None:
    run = launch_run(make_model())
    with pytest.raises(RunActionError, match="no such cell"):
        control.add_trials(run.pk, make_cell(make_config(make_run())).pk, 1)
    Provider.objects.all().delete()
    with pytest.raises(RunActionError, match="Example was deleted"):
        control.add_trials(run.pk, run.cells.get().pk, 1)


def test_add_trials_to_configuration_without_method_is_refused() -> None:
    run = launch_run(make_model(), trials=1)
    run.configs.update(method="none")
    with pytest.raises(RunActionError, match="no method can be used"):
        control.add_trials(run.pk, run.cells.get().pk, 1)
    assert run.trials.count() == 1


def test_add_trials_to_not_applicable_cell_are_not_applicable() -> None:
    run = launch_run(make_model(workarounds=["tool_use_disabled"]), trials=1)
    control.add_trials(run.pk, run.cells.get().pk, 2)
    assert set(run.trials.values_list("state", "outcome", "failure_class")) == {("done", "na", "tools_off")}


def test_start_repeat_keeps_seeds_and_names_original() -> None:
    run = launch_run(make_model(), trials=2)
    again = control.start_repeat(run.pk, owner=None)
    assert (again.repeat_of_id, again.seed, again.order_seed) == (run.pk, run.seed, run.order_seed)
    planned = ("index", "block", "position", "scenario", "instance_seed", "seed", "state")
    assert list(again.trials.values_list(*planned)) == list(run.trials.values_list(*planned))


def test_start_repeat_uses_frozen_settings() -> None:
    model = make_model(workarounds=["tool_use_disabled"])
    run = launch_run(model, scenarios=("happy_path", "chat_only"), trials=2)
    control.add_trials(run.pk, run.cells.get(scenario="chat_only").pk, 3)
    Model.objects.update(workarounds=[])
    Provider.objects.update(option_defaults={"temperature": 2})
    again = control.start_repeat(run.pk, owner=None)
    frozen = ("layers", "policy_hash", "position", "model_id")
    assert list(again.configs.values_list(*frozen)) == list(run.configs.values_list(*frozen))
    assert list(again.cells.values_list("scenario", "queued", "not_applicable")) == [
        ("happy_path", 0, 2),
        ("chat_only", 2, 0),
    ]
    assert (again.trial_count, again.trials_per_cell) == (4, 2)


def test_start_repeat_of_resent_trial_repeats_that_trial() -> None:
    run = launch_run(make_model(), trials=7)
    resent = resend_trial(run.trials.order_by("pk")[3].pk)
    again = control.start_repeat(resent.pk, owner=None)
    assert list(again.trials.values_list("seed")) == list(resent.trials.values_list("seed"))
    assert (again.trial_count, again.trials.count()) == (1, 1)


def test_start_repeat_without_applicable_trials_is_finished() -> None:
    run = launch_run(make_model(workarounds=["tool_use_disabled"]), trials=2)
    assert control.start_repeat(run.pk, owner=None).state == Run.State.FINISHED


def test_start_repeat_with_deleted_provider_is_refused() -> None:
    run = launch_run(make_model())
    Provider.objects.all().delete()
    with pytest.raises(RunActionError, match="The run cannot be repeated: the provider Example was deleted"):
        control.start_repeat(run.pk, owner=None)


def test_start_repeat_and_add_trials_refuse_changed_scenario() -> None:
    run = launch_run(make_model())
    Cell.objects.update(scenario_version=99)
    with pytest.raises(RunActionError, match="happy_path has changed since"):
        control.start_repeat(run.pk, owner=None)
    with pytest.raises(RunActionError, match="happy_path has changed since"):
        control.add_trials(run.pk, run.cells.get().pk, 1)


def test_run_actions_with_many_paid_requests_need_confirmation() -> None:
    run = launch_run(make_model(provider=make_provider(max_attempts=2)), trials=300, overrides={"max_turns": 4})
    cell = run.cells.get()
    run.trials.update(state="done", outcome="infra")
    actions: list[tuple[Callable[..., object], int]] = [
        (lambda confirmed: control.start_repeat(run.pk, owner=None, confirmed_requests=confirmed), 3600),
        (lambda confirmed: control.add_trials(run.pk, cell.pk, 1000, confirmed_requests=confirmed), 12_000),
        (lambda confirmed: control.retry_errored_trials(run.pk, confirmed_requests=confirmed), 3600),
    ]
    for action, most in actions:
        with pytest.raises(PaidRequestsUnconfirmedError, match=f"up to {most:,} requests to Example"):
            action(most - 1)
    assert not Trial.objects.filter(state="queued").exists()
    assert [bool(action(most)) for action, most in actions] == [True, True, True]


def test_add_trials_under_request_limit_needs_no_confirmation() -> None:
    run = launch_run(make_model(), request_cap=100)
    assert control.add_trials(run.pk, run.cells.get().pk, 1000) == 1000


def test_add_trials_of_simulated_model_needs_no_confirmation() -> None:
    run = launch_run(make_model(provider=make_provider(kind="simulated")))
    assert control.add_trials(run.pk, run.cells.get().pk, 1000) == 1000


def test_set_label_strips_text_and_refuses_deleted_run() -> None:
    run = launch_run(make_model())
    control.set_label(run.pk, "  kept  ")
    control.delete_run(run.pk)
    run.refresh_from_db()
    assert (run.label, run.state, run.deleted_at is None) == ("kept", Run.State.CANCELLED, False)
    with pytest.raises(RunActionError, match="There is no run"):
        control.set_label(run.pk, "x")


@pytest.mark.parametrize("action", QUEUEING_ACTIONS)
def test_finish_runs_keeps_run_open_that_gets_trials_meanwhile(elsewhere: RunInThread, action: str) -> None:
    cell = make_cell(make_config(make_run(state=Run.State.RUNNING)))
    make_trial(cell, "infra")
    recompute([cell.pk])

    with transaction.atomic():
        QUEUEING_ACTIONS[action](cell)
        finishing = elsewhere(finish_runs)
        wait_for_blocked_sessions()
    assert finishing.result(timeout=30) == ()
    run = Run.objects.get()
    assert (run.state, run.finished_at) == (Run.State.RUNNING, None)


def test_sweep_reopens_finished_run_with_queued_trials() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "queued")
    sweep()
    run = Run.objects.get()
    assert (run.state, run.finished_at) == (Run.State.RUNNING, None)


@pytest.mark.parametrize("action", QUEUEING_ACTIONS)
def test_retry_and_add_trials_refuse_run_being_cancelled(action: str) -> None:
    cell = make_cell(make_config(make_run(state=Run.State.CANCELLING)))
    make_trial(cell, "infra")
    make_trial(cell, "running")
    with pytest.raises(RunActionError, match="is being cancelled"):
        QUEUEING_ACTIONS[action](cell)
    assert not cell.trials.filter(state="queued").exists()
    assert Run.objects.get().state == Run.State.CANCELLING


def test_add_trials_refuses_deleted_run() -> None:
    cell = make_cell(make_config(make_run()))
    control.delete_run(cell.run_id)
    with pytest.raises(RunActionError, match="There is no run"):
        control.add_trials(cell.run_id, cell.pk, 1)


def test_claim_skips_trials_of_deleted_run() -> None:
    model = make_model()
    run = launch_run(model)
    Run.objects.filter(pk=run.pk).update(deleted_at=run.created_at)
    assert claim(model.provider_id, limit=5, worker="w") == ()
    assert not has_queued_trials(model.provider_id)
    assert list_waiting_providers() == ()
