import threading
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import transaction

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, make_trials
from tests.lab.conftest import RunInThread, wait_for_blocked_sessions
from tests.lab.query_plans import count_most_rows, count_most_rows_if_planned_early
from toolbench.lab.metrics import cells
from toolbench.lab.metrics.cells import (
    MAX_RELIABLE_LAG_MS,
    RECOMPUTE_STATEMENT,
    mark_stale,
    recompute_all_stale,
    recompute_stale,
)
from toolbench.lab.models import Case, CaseSet, Cell, Step, Trial
from toolbench.lab.worker.claims import claim
from toolbench.lab.worker.storage import Batch, OutcomeWrite, write_batch

pytestmark = pytest.mark.django_db(transaction=True)


def make_empty_cell() -> Cell:
    return make_cell(make_config(make_run()))


def test_recompute_stale_counts_trials_by_outcome() -> None:
    cell = make_empty_cell()
    make_trials(cell, **{"pass": 4, "fail": 2, "infra": 1, "na": 1, "cancelled": 1, "queued": 2, "running": 1})
    cell.refresh_from_db()
    assert (cell.passed, cell.failed, cell.infra, cell.not_applicable) == (4, 2, 1, 1)
    assert (cell.cancelled, cell.queued, cell.running, cell.stale) == (1, 2, 1, False)


def test_recompute_stale_quantiles_omit_infrastructure_errors() -> None:
    cell = make_empty_cell()
    for duration in (100.0, 200.0, 300.0):
        make_trial(cell, "pass", duration_ms=duration)
    make_trial(cell, "infra", duration_ms=9e9)
    recompute_stale()
    cell.refresh_from_db()
    assert (cell.p50_ms, cell.p95_ms) == (200.0, 300.0)


def test_recompute_stale_counts_distinct_first_attempt_and_deadline() -> None:
    cell = make_empty_cell()
    make_trial(cell, "pass", answer_hash="a")
    make_trial(cell, "pass", answer_hash="a", output_retries=1)
    make_trial(cell, "fail", answer_hash="b", end="DEADLINE_EXCEEDED")
    make_trial(cell, "infra", answer_hash="c")
    recompute_stale()
    cell.refresh_from_db()
    assert (cell.distinct, cell.first_attempt_passed, cell.deadline_failed) == (1, 1, 1)


def test_recompute_stale_counts_repeated_answers_by_instance() -> None:
    published, drawn = make_empty_cell(), make_cell(make_config(make_run(instance_kind="drawn")))
    for seed, answer_hash in ((1, "a"), (2, "b"), (3, "a"), (4, "")):
        make_trial(published, instance_seed=seed, answer_hash=answer_hash)
        make_trial(drawn, instance_seed=seed, answer_hash=answer_hash)
    make_trial(drawn, instance_seed=2, answer_hash="b")
    recompute_stale()
    for cell in (published, drawn):
        cell.refresh_from_db()
        assert (cell.distinct, cell.repeated_answers) == (2, 1)


def test_recompute_stale_counts_equal_answers_to_a_test_case_as_repeats() -> None:
    case = Case.objects.create(set=CaseSet.objects.create(name="Own"), slug="own-weather", title="Weather")
    cell = make_cell(make_config(make_run(instance_kind="drawn")), case.slug)
    for seed in range(3):
        make_trial(cell, instance_seed=seed, answer_hash="a")
    recompute_stale()
    cell.refresh_from_db()
    assert (cell.distinct, cell.repeated_answers) == (1, 2)


def test_recompute_stale_trial_over_deadline_counts_as_unanswered() -> None:
    cell = make_empty_cell()
    make_trial(cell, "pass", duration_ms=1000.0)
    make_trial(cell, "fail", duration_ms=600_000.0, end="DEADLINE_EXCEEDED", behaviour_seen=True)
    recompute_stale()
    cell.refresh_from_db()
    assert (cell.p50_ms, cell.p95_ms, cell.distinct) == (1000.0, 1000.0, 1)
    assert (cell.behaviour_seen, cell.behaviour_asked) == (0, 0)


def test_recompute_stale_sums_costs_upstreams_marks_and_behaviour() -> None:
    cell = make_empty_cell()
    make_trial(cell, "pass", upstream="x", cost=0.5, added_by_hand=True, behaviour_seen=True, client_lag_ms=80.0)
    make_trial(cell, "fail", upstream="y", cost=0.25, behaviour_seen=False, client_lag_ms=1.0)
    make_trial(cell, "pass", upstream="x", cost=0.5)
    recompute_stale()
    cell.refresh_from_db()
    assert (cell.cost, cell.upstreams, cell.added_by_hand, cell.saturated) == (1.25, ["x", "y"], 1, 1)
    assert (cell.behaviour_seen, cell.behaviour_asked, cell.requests) == (1, 2, 6)


def test_recompute_stale_includes_cost_of_lost_executions() -> None:
    cell = make_empty_cell()
    again = make_trial(cell, "pass", execution=2, requests=1, input_tokens=10, output_tokens=1, cost=0.25)
    waiting = make_trial(cell, "queued", execution=1)
    never_ended = make_trial(cell, "cancelled", execution=1, requests=0, input_tokens=0, output_tokens=0)
    for trial in (again, waiting, never_ended):
        make_step(trial, execution=1, attempt=1, input_tokens=100, output_tokens=10, cost=0.5)
        make_step(trial, execution=1, attempt=2, input_tokens=100, output_tokens=10, cost=0.5)
        make_step(trial, execution=1, kind="tool")
    make_step(again, execution=2, input_tokens=10, output_tokens=1, cost=0.25)
    recompute_stale()
    cell.refresh_from_db()
    assert (cell.requests, cell.retries, cell.cost) == (7, 3, 3.25)
    assert (cell.input_tokens, cell.output_tokens) == (610, 61)


def test_recompute_stale_repeated_changes_nothing() -> None:
    cell = make_empty_cell()
    make_trials(cell, **{"pass": 3})
    before = Cell.objects.filter(pk=cell.pk).values().get()
    mark_stale([cell.pk])
    assert recompute_stale() == 1
    assert recompute_stale() == 0
    assert Cell.objects.filter(pk=cell.pk).values().get() == before


def test_recompute_all_stale_of_run_works_in_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cells, "MAX_CELLS_PER_BATCH", 2)
    config, other = make_config(make_run()), make_empty_cell()
    own = [make_cell(config, f"scenario_{number}") for number in range(5)]
    mark_stale([other.pk, *(cell.pk for cell in own)])

    recompute_all_stale(config.run_id)
    assert list(Cell.objects.filter(stale=True)) == [other]
    recompute_all_stale()
    assert not Cell.objects.filter(stale=True).exists()


def test_recompute_stale_cell_without_trials_is_zero() -> None:
    cell = make_empty_cell()
    recompute_stale()
    cell.refresh_from_db()
    assert (cell.passed, cell.p50_ms, cell.cost, cell.upstreams, cell.stale) == (0, None, None, [], False)


def test_recompute_stale_counts_change_committed_meanwhile(elsewhere: RunInThread) -> None:
    cell = make_empty_cell()
    trial = make_trial(cell, "queued")
    changed, go_on = threading.Event(), threading.Event()

    def change() -> None:
        with transaction.atomic():
            Trial.objects.filter(pk=trial.pk).update(state="done", outcome="pass")
            changed.set()
            go_on.wait(30)
            mark_stale([cell.pk])

    writing = elsewhere(change)
    changed.wait(30)
    assert recompute_stale() == 1  # sees the trial as it was
    go_on.set()
    writing.result(timeout=30)
    assert recompute_stale() == 1
    cell.refresh_from_db()
    assert (cell.passed, cell.queued) == (1, 0)


def _mark(trial: Trial) -> None:
    mark_stale([trial.cell_id])


def _end(trial: Trial) -> None:
    assert trial.lease is not None
    assert write_batch(Batch(outcomes=[OutcomeWrite(trial.pk, trial.lease, {"outcome": "pass"})])).ended_ids


def _claim(trial: Trial) -> None:
    assert trial.provider_id is not None
    assert claim(trial.provider_id, limit=1, worker="w")


@pytest.mark.parametrize("change", [_mark, _end, _claim])
def test_mark_stale_during_recompute_leaves_cell_stale(change: Callable[[Trial], None], elsewhere: RunInThread) -> None:
    cell = make_cell(make_config(make_run(state="running")))
    make_trial(cell, "queued")
    trial = make_trial(cell, "running", lease=uuid4())
    counted, go_on = threading.Event(), threading.Event()

    def count() -> None:
        with transaction.atomic():
            assert recompute_stale() == 1
            counted.set()
            go_on.wait(30)

    counting = elsewhere(count)
    counted.wait(30)
    changing = elsewhere(change, trial)  # begins while the cell is still stored as stale
    wait_for_blocked_sessions()
    go_on.set()
    counting.result(timeout=30)
    changing.result(timeout=30)
    assert Cell.objects.get(pk=cell.pk).stale


def test_recompute_stale_skips_locked_cell_and_recompute_all_waits(elsewhere: RunInThread) -> None:
    cell = make_empty_cell()
    marked, go_on = threading.Event(), threading.Event()

    def change() -> None:
        with transaction.atomic():
            mark_stale([cell.pk])
            marked.set()
            go_on.wait(30)

    writing = elsewhere(change)
    marked.wait(30)
    assert recompute_stale() == 0
    waiting = elsewhere(recompute_all_stale, cell.run_id)
    wait_for_blocked_sessions()
    go_on.set()
    writing.result(timeout=30)
    waiting.result(timeout=30)
    assert not Cell.objects.filter(stale=True).exists(), "recompute_all_stale has waited for the lock"


def test_mark_stale_in_parallel_batches_does_not_deadlock(elsewhere: RunInThread) -> None:
    config = make_config(make_run())
    cells = [make_cell(config, f"s{number}") for number in range(12)]
    trials = {cell.pk: [make_trial(cell, "running").pk for _ in range(8)] for cell in cells}

    def finish(place: int) -> None:
        order = [cell.pk for cell in (cells if place % 2 else reversed(cells))]
        with transaction.atomic():
            Trial.objects.filter(pk__in=[trials[pk][place] for pk in order]).update(state="done", outcome="pass")
            mark_stale(order)
        recompute_stale()

    for future in [elsewhere(finish, place) for place in range(8)]:
        future.result(timeout=30)
    while recompute_stale():
        pass
    assert set(Cell.objects.filter(config=config).values_list("passed", "running")) == {(8, 0)}


def test_recompute_stale_sums_repairs_and_fallbacks() -> None:
    cell = make_empty_cell()
    make_trial(cell, "pass", repaired_calls=2, asked_again=1, fallback_turns=3)
    make_trial(cell, "fail", repaired_calls=1, parse_error_ends=1)
    make_trial(cell, "cancelled", repaired_calls=9)
    recompute_stale()
    cell.refresh_from_db()
    counts = (cell.repaired_calls, cell.asked_again, cell.fallback_turns, cell.parse_error_ends)
    assert counts == (3, 1, 3, 1)


def test_recompute_statement_reads_each_trial_at_most_twice() -> None:
    cell = make_empty_cell()
    make_trials(cell, **{"pass": 150})
    parameters = {"cells": [cell.pk], "lag": MAX_RELIABLE_LAG_MS, "priced": [], "input": [], "output": []}
    assert count_most_rows(RECOMPUTE_STATEMENT, parameters) <= 2 * 150
    cell.refresh_from_db()
    assert cell.passed == 150


@pytest.mark.parametrize("answer", [{"status": 200, "ok": True}, {"status": 429, "ok": False}])
def test_recompute_statement_planned_on_empty_tables_is_linear(answer: dict[str, object]) -> None:
    def fill() -> dict[str, object]:
        cell = make_empty_cell()
        ended, running = make_trial(cell, "pass"), make_trial(cell, "running")
        for trial in (ended, running):
            columns = {field.attname: getattr(trial, field.attname) for field in Trial._meta.concrete_fields[1:]}
            copies = Trial.objects.bulk_create(Trial(**columns) for _ in range(50))
            step = {"execution": 1, "kind": "exchange", "turn": 0, "started_ms": 0, "duration_ms": 1}
            step |= answer
            Step.objects.bulk_create(Step(trial=copy, ordinal=number, **step) for copy in copies for number in range(3))
        return {"cells": [cell.pk], "lag": MAX_RELIABLE_LAG_MS, "priced": [], "input": [], "output": []}

    types = {"cells": "bigint[]", "lag": "integer", "priced": "bigint[]", "input": "float[]", "output": "float[]"}
    assert count_most_rows_if_planned_early(RECOMPUTE_STATEMENT, types, fill) < 1000
