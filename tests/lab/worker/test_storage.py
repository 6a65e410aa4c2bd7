import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial
from tests.lab.conftest import RunInThread, wait_for_blocked_sessions
from tests.lab.query_plans import count_most_rows
from tests.lab.scripted_runs import launch_run, read_step_facts
from toolbench.engine.events import Request, ToolResult
from toolbench.engine.types import Envelope, SchemaError, ToolCall, Turn, Usage
from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.models import Run, Step, Trial
from toolbench.lab.worker import database_thread
from toolbench.lab.worker.claims import claim
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS, is_unavailable
from toolbench.lab.worker.slots import TrialLease
from toolbench.lab.worker.storage import Batch, OutcomeWrite, RequeueWrite, StepWrite, WriteResult, write_batch
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep

pytestmark = pytest.mark.django_db(transaction=True)


def make_running_trial(run: Run | None = None) -> Trial:
    cell = make_cell(make_config(run or make_run(state=Run.State.RUNNING)))
    return make_trial(cell, "running", lease=uuid4())


def make_exchange_step(ordinal: int = 1, **fields: Any) -> ExchangeStep:
    turn = Turn({"role": "assistant", "content": "hi"}, "hi", usage=Usage(10, 5), finish_reason="stop")
    step = ExchangeStep(
        ordinal=ordinal,
        turn=0,
        attempt=1,
        url="http://x/v1/chat/completions",
        request=Request(0, "chat/completions", b"{}", True),
        request_body=b"{}",
        request_headers={"authorization": "Bearer ****"},
        status=200,
        response_headers={"x": "y"},
        response_body=b'{"a": "\xff\x00"}',
        body_bytes=10,
        body_cut=False,
        masked=True,
        started_ms=0.0,
        first_byte_ms=5.0,
        duration_ms=9.0,
        backoff_ms=0.0,
        retry_reason="",
        error=None,
        turn_read=turn,
        chunks=((5.0, 10),),
    )
    return replace(step, **fields)


def make_tool_step(ordinal: int = 2) -> ToolStep:
    result = ToolResult(
        call=ToolCall("c1", "state_get", '{"select": ["/a\x00\\ud800"]}'),
        arguments={"select": ["/a\x00\ud800"], "value": float("nan")},
        parse_status="ok",
        envelope=Envelope(False, "state_get", errors=({"code": "ARGUMENT_ERROR", "message": "no"},)),
        content='{"ok":false}\ud800',
        was_executed=True,
        schema_errors=(SchemaError("$.select", "type", "not a list"),),
        duration_ms=0.5,
    )
    return ToolStep(ordinal, 0, 9.0, 0.5, result)


def build_step_write(trial: Trial, step: ExchangeStep | ToolStep) -> StepWrite:
    assert trial.lease is not None
    return StepWrite(trial.pk, trial.execution, trial.lease, step)


def build_outcome_write(trial: Trial, **columns: Any) -> OutcomeWrite:
    assert trial.lease is not None
    return OutcomeWrite(trial.pk, trial.lease, {"outcome": "pass", "task_pass": True, **columns})


def test_write_batch_counts_successors_of_ended_trials() -> None:
    ended, successor, lost = make_running_trial(), make_running_trial(), make_running_trial()
    Trial.objects.filter(pk__in=[successor.pk, lost.pk]).update(backing_off=True)
    successors = [TrialLease(successor.pk, successor.lease or uuid4()), TrialLease(lost.pk, uuid4())]
    assert write_batch(Batch([], [build_outcome_write(ended)], successors=successors)).ended_ids == {ended.pk}
    assert list(Trial.objects.filter(backing_off=True)) == [lost]


def test_write_batch_locks_trials_in_order_of_renewal(elsewhere: RunInThread) -> None:
    ended, successor = make_running_trial(), make_running_trial()
    batch = Batch(
        outcomes=[build_outcome_write(ended)], successors=[TrialLease(successor.pk, successor.lease or uuid4())]
    )
    with transaction.atomic():
        Trial.objects.select_for_update(no_key=True).get(pk=ended.pk)
        writing = elsewhere(write_batch, batch)
        wait_for_blocked_sessions()
        Trial.objects.select_for_update(no_key=True, nowait=True).get(pk=successor.pk)
    assert writing.result().ended_ids == {ended.pk}


def test_write_batch_with_refused_outcome_counts_successors(refuse: Callable[[str], None]) -> None:
    refuse("22000")
    ended, successor = make_running_trial(), make_running_trial()
    Trial.objects.filter(pk=successor.pk).update(backing_off=True)
    successors = [TrialLease(successor.pk, successor.lease or uuid4())]
    write_batch(Batch([], [build_outcome_write(ended, sentence="refused")], successors=successors))
    assert not Trial.objects.filter(backing_off=True).exists()
    assert Trial.objects.filter(state="done").count() == 1


def test_write_batch_stores_exchange_with_bytes_and_details() -> None:
    trial = make_running_trial()
    write_batch(Batch([build_step_write(trial, make_exchange_step())]))
    step = trial.steps.select_related("body").get()
    assert (step.kind, step.status, step.ok, step.finish_reason, step.input_tokens) == (
        "exchange",
        200,
        True,
        "stop",
        10,
    )
    assert (bytes(step.body.request), bytes(step.body.response)) == (b"{}", b'{"a": "\xff\x00"}')
    assert step.masked
    stored = read_step_facts(step)
    assert stored["request_headers"] == {"authorization": "Bearer ****"}
    assert stored["usage"]["output_tokens"] == 5
    assert stored["chunks"] == [[5.0, 10]]


def test_write_batch_stores_tool_step_with_lone_surrogates() -> None:
    trial = make_running_trial()
    write_batch(Batch([build_step_write(trial, make_tool_step())]))
    step = trial.steps.select_related("body").get()
    assert (step.kind, step.tool_name, step.ok, step.error_code) == ("tool", "state_get", False, "ARGUMENT_ERROR")
    assert bytes(step.body.response).decode("utf-8", "surrogatepass") == '{"ok":false}\ud800'
    stored = read_step_facts(step)
    assert stored["arguments"]["select"] == ["/a\x00\ud800"]
    assert stored["schema_errors"] == [{"path": "$.select", "kind": "type", "message": "not a list"}]


def test_write_batch_outcome_ends_trial_and_marks_cell_stale() -> None:
    trial = make_running_trial()
    assert write_batch(
        Batch(outcomes=[build_outcome_write(trial, final_text=b"Done.".hex(), requests=3)])
    ).ended_ids == {trial.pk}
    trial.refresh_from_db()
    assert (trial.state, trial.outcome, trial.lease, trial.requests) == ("done", "pass", None, 3)
    assert bytes(trial.final_text) == b"Done."
    assert trial.finished_at is not None
    assert trial.cell.stale


def test_write_batch_outcome_keeps_columns_it_does_not_name() -> None:
    trial = make_running_trial()
    write_batch(Batch(outcomes=[build_outcome_write(trial, outcome="infra", task_pass=None, sentence="gone")]))
    trial.refresh_from_db()
    assert (trial.outcome, trial.task_pass, trial.turns, trial.verdict) == ("infra", None, 0, {})


def test_write_batch_with_wrong_lease_is_refused_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    trial = make_running_trial()
    late = Batch(
        [StepWrite(trial.pk, trial.execution, uuid4(), make_exchange_step())],
        [OutcomeWrite(trial.pk, uuid4(), {"outcome": "fail"})],
    )
    with caplog.at_level(logging.WARNING):
        assert write_batch(late) == WriteResult()
    trial.refresh_from_db()
    assert (trial.state, trial.outcome, trial.steps.count()) == ("running", "", 0)
    assert "its lease was lost" in caplog.text


def test_write_batch_repeated_stores_steps_and_tokens_once() -> None:
    run = make_run(state=Run.State.RUNNING)
    trial = make_running_trial(run)
    batch = Batch([build_step_write(trial, make_exchange_step()), build_step_write(trial, make_tool_step())])
    write_batch(batch)
    write_batch(batch)
    run.refresh_from_db()
    assert (trial.steps.count(), run.tokens_used) == (2, 15)


def test_write_batch_outcome_with_missing_steps_is_incomplete() -> None:
    run = make_run(state=Run.State.RUNNING, requests_reserved=9)
    trial, complete = make_running_trial(run), make_running_trial(run)
    steps = [build_step_write(trial, make_exchange_step()), build_step_write(trial, make_tool_step())]
    outcome = replace(build_outcome_write(trial), steps=steps, unsent_requests=2)
    other = replace(build_outcome_write(complete), steps=[build_step_write(complete, make_exchange_step())])
    write_batch(Batch(steps[1:]))
    assert write_batch(Batch([*other.steps], [outcome, other])) == WriteResult(
        frozenset({complete.pk}), frozenset({trial.pk})
    )
    trial.refresh_from_db()
    run.refresh_from_db()
    assert (trial.state, trial.outcome, run.requests_reserved) == ("running", "", 9)
    assert write_batch(Batch(steps, [outcome])).ended_ids == {trial.pk}
    run.refresh_from_db()
    assert (trial.steps.count(), run.requests_reserved, run.tokens_used) == (2, 7, 30)


def test_write_batch_steps_of_lost_execution_leave_it_incomplete() -> None:
    trial = make_running_trial()
    write_batch(Batch([build_step_write(trial, make_exchange_step())]))
    Trial.objects.filter(pk=trial.pk).update(execution=2)
    trial.refresh_from_db()
    outcome = replace(build_outcome_write(trial), steps=[build_step_write(trial, make_exchange_step())])
    assert write_batch(Batch(outcomes=[outcome])).incomplete_ids == {trial.pk}


def test_write_batch_placeholder_step_completes_trial() -> None:
    trial = make_running_trial()
    refused = build_step_write(trial, make_exchange_step(duration_ms=float("nan")))
    outcome = replace(build_outcome_write(trial), steps=[refused])
    assert write_batch(Batch([refused], [outcome])).ended_ids == {trial.pk}
    assert trial.steps.get().error_message == "The database refused the contents of this step."


def test_write_batch_incomplete_outcome_of_lost_lease_is_dropped() -> None:
    trial = make_running_trial()
    outcome = replace(build_outcome_write(trial), lease=uuid4(), steps=[build_step_write(trial, make_exchange_step())])
    assert write_batch(Batch(outcomes=[outcome])) == WriteResult()


def test_write_batch_requeue_stores_steps_and_queues_trial() -> None:
    trial = make_running_trial()
    assert trial.lease is not None
    write_batch(Batch([build_step_write(trial, make_exchange_step())], requeues=[RequeueWrite(trial.pk, trial.lease)]))
    trial.refresh_from_db()
    assert (trial.state, trial.lease is None, trial.steps.count()) == ("queued", True, 1)


def test_write_batch_subtracts_unsent_requests_once() -> None:
    run = make_run(state=Run.State.RUNNING, requests_reserved=9)
    ended, requeued, lost = make_running_trial(run), make_running_trial(run), make_running_trial(run)
    assert requeued.lease is not None
    batch = Batch(
        [build_step_write(ended, make_exchange_step())],
        [
            replace(build_outcome_write(ended), unsent_requests=2),
            OutcomeWrite(lost.pk, uuid4(), {"outcome": "pass"}, unsent_requests=3),
        ],
        [RequeueWrite(requeued.pk, requeued.lease, unsent_requests=1)],
    )
    write_batch(batch)
    write_batch(batch)
    run.refresh_from_db()
    assert (run.requests_reserved, run.tokens_used) == (6, 15)


def test_write_batch_with_refused_row_subtracts_unsent_requests() -> None:
    run = make_run(state=Run.State.RUNNING, requests_reserved=9)
    ended = replace(build_outcome_write(make_running_trial(run), sentence="\x00"), unsent_requests=2)
    write_batch(Batch(outcomes=[ended]))
    run.refresh_from_db()
    assert run.requests_reserved == 7


def test_write_batch_outcome_refused_twice_is_an_internal_error() -> None:
    trial = make_running_trial()
    outcome = build_outcome_write(trial, category="\x00")
    assert write_batch(Batch(outcomes=[outcome])).ended_ids == {trial.pk}
    trial.refresh_from_db()
    assert trial.sentence == "The database refused this verdict."
    assert (trial.failure_class, trial.cause, trial.taxonomy) == ("our_error", "our_error", read_taxonomy_version())


def test_write_batch_refused_rows_leave_others_stored(caplog: pytest.LogCaptureFixture) -> None:
    trials = [make_running_trial() for _ in range(5)]
    steps = [build_step_write(trial, make_exchange_step()) for trial in trials]
    steps[2] = build_step_write(trials[2], make_exchange_step(duration_ms=float("nan")))
    outcomes = [build_outcome_write(trial) for trial in trials]
    outcomes[3] = build_outcome_write(trials[3], sentence="\x00")
    assert write_batch(Batch(steps, outcomes)).ended_ids == {trial.pk for trial in trials}
    assert Step.objects.filter(trial__in=trials).count() == 5
    assert Trial.objects.get(pk=trials[3].pk).sentence.startswith("The database refused the texts of this verdict.")
    assert caplog.text.count("cannot be stored as it is") == 2


def test_write_batch_outage_while_split_writes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    trials = [make_running_trial() for _ in range(2)]
    batch = Batch(outcomes=[build_outcome_write(trials[0]), build_outcome_write(trials[1], sentence="\x00")])
    savepoints = count(1)

    def fail_third_savepoint(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith("SAVEPOINT") and next(savepoints) == 3:  # the first outcome is written by then
            raise OperationalError("the database is away")
        return execute(sql, *rest)

    with connection.execute_wrapper(fail_third_savepoint), pytest.raises(OperationalError):
        write_batch(batch)
    assert not Trial.objects.filter(state="done").exists()
    assert write_batch(batch).ended_ids == {trial.pk for trial in trials}
    assert "lease was lost" not in caplog.text


def test_write_batch_implausible_usage_is_stored_as_null() -> None:
    trial = make_running_trial()
    huge = Turn({}, "", usage=Usage(10**30, -5), upstream="u" * 500, model_echoed="\x00")
    write_batch(Batch([build_step_write(trial, make_exchange_step(turn_read=huge))]))
    step = trial.steps.get()
    assert (step.input_tokens, step.output_tokens, len(step.upstream)) == (None, None, 120)


@pytest.mark.parametrize(
    "columns",
    [
        {"input_tokens": 10**30},
        {"turns": -1},
        {"first_bad_ordinal": 2**40},
        {"cause": "x" * 10_000},
        {"outcome": "no such outcome, and too long"},
        {"verdict": {1, 2}},
    ],
)
def test_write_batch_unstorable_outcome_still_ends_every_trial(columns: dict[str, Any]) -> None:
    trials = [make_running_trial() for _ in range(3)]
    outcomes = [
        build_outcome_write(trials[0]),
        build_outcome_write(trials[1], **columns),
        build_outcome_write(trials[2]),
    ]
    assert write_batch(Batch(outcomes=outcomes)).ended_ids == {trial.pk for trial in trials}
    assert Trial.objects.filter(outcome="pass").count() >= 2
    assert set(Trial.objects.values_list("state", "lease")) == {("done", None)}


@pytest.mark.parametrize("fields", [{"duration_ms": object()}, {"turn_read": 7}, {"status": -1}, {"url": 7}])
def test_write_batch_unstorable_step_leaves_placeholder(fields: dict[str, Any]) -> None:
    trials = [make_running_trial() for _ in range(3)]
    steps = [build_step_write(trial, make_exchange_step(**(fields if trial is trials[1] else {}))) for trial in trials]
    write_batch(Batch(steps, [build_outcome_write(trial) for trial in trials]))
    assert Step.objects.filter(trial__in=trials).count() == 3
    assert Trial.objects.filter(outcome="pass").count() == 3


@pytest.mark.parametrize("state", ["54000", "54001", "57014", "XX000", "XX001", "53400"])
def test_write_batch_permanent_refusal_splits_batch(refuse: Callable[[str], None], state: str) -> None:
    refuse(state)
    trials = [make_running_trial() for _ in range(5)]
    sentences = ["", "", "refused", "", ""]
    steps = [build_step_write(trial, make_exchange_step()) for trial in trials]
    outcomes = [
        build_outcome_write(trial, sentence=sentence) for trial, sentence in zip(trials, sentences, strict=True)
    ]
    assert write_batch(Batch(steps, outcomes)).ended_ids == {trial.pk for trial in trials}
    assert Trial.objects.get(pk=trials[2].pk).sentence.startswith("The database refused the texts of this verdict.")


@pytest.mark.parametrize("state", ["53100", "53200", "53300", "40P01", "40001", "55P03", "57P01", "57P03", "58030"])
def test_write_batch_temporary_refusal_stores_nothing(refuse: Callable[[str], None], state: str) -> None:
    refuse(state)
    trials = [make_running_trial() for _ in range(2)]
    with pytest.raises(UNAVAILABLE_ERRORS) as refused:
        write_batch(
            Batch(outcomes=[build_outcome_write(trials[0]), build_outcome_write(trials[1], sentence="refused")])
        )
    assert is_unavailable(refused.value)
    assert not Trial.objects.filter(state="done").exists()


def test_write_batch_rows_read_grow_with_batch_not_its_square(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(provider=make_provider(concurrency=50))
    launch_run(model, trials=50)
    trials = claim(model.provider_id, limit=50, worker="w")
    steps = [
        StepWrite(trial.id, trial.execution, trial.lease, make_exchange_step(ordinal))
        for trial in trials
        for ordinal in range(1, 6)
    ]
    outcomes = [OutcomeWrite(trial.id, trial.lease, {"outcome": "pass"}) for trial in trials]
    statements = record_statements(monkeypatch)
    with transaction.atomic():
        assert write_batch(Batch(steps, outcomes)).ended_ids == {trial.id for trial in trials}
        transaction.set_rollback(True)
    most_rows = [count_most_rows(sql, parameters) for sql, parameters in statements if "json_to_recordset" in sql]
    assert (len(steps), len(trials), Step.objects.count()) == (250, 50, 250)
    assert len(most_rows) == 2
    assert max(most_rows) <= 2 * 250


def record_statements(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Return a list to which each statement of `open_cursor` is added with its parameters."""
    statements: list[tuple[str, Any]] = []

    class RecordingCursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> "RecordingCursor":
            statements.append((query, params))
            return super().execute(query, params, **options)

    monkeypatch.setattr(database_thread, "open_cursor", lambda: RecordingCursor(connection.connection))
    return statements
