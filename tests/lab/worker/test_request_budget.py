import pytest

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from tests.lab.conftest import RunInThread
from toolbench.lab.metrics.cells import mark_stale, recompute_stale
from toolbench.lab.models import Cell, Run, Trial
from toolbench.lab.worker.request_budget import Reservation, correct_request_counts, pause_runs_at_limit, reserve

pytestmark = pytest.mark.django_db(transaction=True)


def make_running_run(**fields: object) -> Run:
    run = make_run(state=Run.State.RUNNING, **fields)
    make_trial(make_cell(make_config(run)), "queued")
    return run


def test_reserve_without_limit_grants_and_counts_all() -> None:
    run = make_running_run()
    assert reserve(run.pk, 5) == Reservation(5)
    run.refresh_from_db()
    assert run.requests_reserved == 5


def test_reserve_near_limit_grants_only_the_remainder() -> None:
    run = make_running_run(request_cap=7)
    assert [reserve(run.pk, 5).requests, reserve(run.pk, 5).requests, reserve(run.pk, 5).requests] == [5, 2, 0]
    run.refresh_from_db()
    assert run.requests_reserved == 7


def test_reserve_in_parallel_keeps_request_limit(elsewhere: RunInThread) -> None:
    run = make_running_run(request_cap=50)
    futures = [elsewhere(reserve, run.pk, 3) for _ in range(40)]
    assert sum(future.result().requests for future in futures) == 50


def test_reserve_at_token_limit_grants_nothing() -> None:
    run = make_running_run(token_cap=100)
    Run.objects.filter(pk=run.pk).update(tokens_used=100)
    assert reserve(run.pk, 1) == Reservation(0)


def test_reserve_for_paused_run_grants_requests() -> None:
    run = make_running_run()
    Run.objects.filter(pk=run.pk).update(state=Run.State.PAUSED)
    assert reserve(run.pk, 1) == Reservation(1)


def test_reserve_for_cancelled_run_reports_cancellation() -> None:
    run = make_running_run()
    Run.objects.filter(pk=run.pk).update(state=Run.State.CANCELLING)
    assert reserve(run.pk, 1) == Reservation(0, is_cancelled=True)


def test_reserve_for_deleted_run_reports_cancellation() -> None:
    assert reserve(987654, 1) == Reservation(0, is_cancelled=True)


def test_pause_runs_at_limit_pauses_run_with_queued_trials() -> None:
    spent, other = (
        make_running_run(request_cap=4, requests_reserved=4),
        make_running_run(request_cap=4, requests_reserved=3),
    )
    assert pause_runs_at_limit() == (spent.pk,)
    spent.refresh_from_db()
    other.refresh_from_db()
    assert (spent.state, other.state) == (Run.State.PAUSED, Run.State.RUNNING)
    assert spent.stopped_reason == "The limit of 4 requests is reached. Raise the limit and resume."


def test_pause_runs_at_limit_ignores_run_without_queued_trials() -> None:
    run = make_run(state=Run.State.RUNNING, request_cap=4, requests_reserved=4)
    make_trial(make_cell(make_config(run)), "pass")
    assert pause_runs_at_limit() == ()


def make_attempted_trial(run: Run) -> Trial:
    """Make a trial with five stored attempts: two of a lost execution, three of the one that ended."""
    cell = make_cell(make_config(run), "chat_only")
    trial = make_trial(cell, execution=2, requests=3)
    for number in range(5):
        make_step(trial, execution=1 if number < 2 else 2, ordinal=number)
    mark_stale([cell.pk])
    recompute_stale()
    return trial


def test_correct_request_counts_handles_run_out_of_range() -> None:
    out_of_range, run = make_running_run(), make_running_run()
    make_attempted_trial(run)  # which recomputes every cell
    for scenario in ("chat_only", "weather"):
        make_cell(make_config(out_of_range), scenario, requests=2**31 - 1)
    assert set(correct_request_counts()) == {out_of_range.pk, run.pk}
    run.refresh_from_db()
    assert run.requests_reserved == 5


def test_correct_request_counts_includes_cell_set_aside() -> None:
    run = make_running_run(requests_reserved=1)
    cell = make_attempted_trial(run).cell
    make_cell(cell.config, "weather", requests=2)
    Cell.objects.filter(pk=cell.pk).update(requests=0, compute_error="cost or time out of range")
    assert correct_request_counts() == (run.pk,)
    run.refresh_from_db()
    assert run.requests_reserved == 7


@pytest.mark.parametrize(("reserved", "corrected"), [(4, 5), (5, 5), (9, 9)])
def test_correct_request_counts_raises_count_to_stored_attempts(reserved: int, corrected: int) -> None:
    run, ended = make_running_run(requests_reserved=reserved), make_run(requests_reserved=1)
    make_attempted_trial(run)
    make_attempted_trial(ended)
    assert correct_request_counts() == ((run.pk,) if reserved < corrected else ())
    run.refresh_from_db()
    ended.refresh_from_db()
    assert (run.requests_reserved, ended.requests_reserved) == (corrected, 1)
    assert correct_request_counts(ended.pk) == (ended.pk,)
