"""Limits of the requests and tokens of a run."""

import pytest

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_step, make_trial
from tests.lab.scripted_runs import launch_run
from toolbench.lab.maintenance import sweep
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.models import Run
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.runs import control, limits
from toolbench.lab.runs.action_checks import RunActionError

pytestmark = pytest.mark.django_db(transaction=True)


def test_resume_run_at_limit_is_refused_until_limit_is_raised() -> None:
    run = launch_run(make_model(), request_cap=10)
    Run.objects.filter(pk=run.pk).update(requests_reserved=10, state=Run.State.PAUSED)
    with pytest.raises(RunActionError, match="limit of 10 requests is reached: raise it first"):
        control.resume_run(run.pk)
    with pytest.raises(RunActionError, match="10 requests are used already"):
        limits.set_limits(run.pk, request_cap=10, token_cap=None)
    limits.set_limits(run.pk, request_cap=11, token_cap=None)
    control.resume_run(run.pk)


def make_run_with_low_count() -> Run:
    """Make a paused run with three stored attempts, of which one is counted."""
    run = make_run(state=Run.State.PAUSED, requests_reserved=1)
    cell = make_cell(make_config(run))
    trial = make_trial(cell, requests=2, execution=2)
    make_step(trial, execution=1, ordinal=1)
    make_trial(cell, "queued")
    mark_stale([cell.pk])
    return run


def test_set_limits_corrects_count_below_stored_attempts() -> None:
    run = make_run_with_low_count()
    with pytest.raises(RunActionError, match="3 requests are used already"):
        limits.set_limits_and_resume(run.pk, request_cap=3, token_cap=None)
    limits.set_limits_and_resume(run.pk, request_cap=4, token_cap=None)
    run.refresh_from_db()
    assert (run.requests_reserved, run.request_cap, run.state) == (3, 4, "running")


def test_sweep_corrects_count_below_stored_attempts() -> None:
    run = make_run_with_low_count()
    sweep()
    run.refresh_from_db()
    assert run.requests_reserved == 3


def test_set_limits_too_large_keeps_earlier_limit() -> None:
    run = launch_run(make_model(), request_cap=10)
    with pytest.raises(RunActionError, match="is not paused"):
        limits.set_limits_and_resume(run.pk, request_cap=20, token_cap=None)
    control.pause_run(run.pk)
    with pytest.raises(RunActionError, match="at most 2,147,483,647 requests"):
        limits.set_limits_and_resume(run.pk, request_cap=10**15, token_cap=None)
    run.refresh_from_db()
    assert run.request_cap == 10


def test_set_limits_and_resume_needs_confirmation_of_paid_requests() -> None:
    model = make_model(provider=make_provider(max_attempts=2))
    run = launch_run(model, trials=300, overrides={"max_turns": 4}, request_cap=100)
    control.pause_run(run.pk)
    limits.set_limits(run.pk, request_cap=50, token_cap=None)
    for cap, most in ((None, 3600), (500, 500)):
        with pytest.raises(PaidRequestsUnconfirmedError, match=f"up to {most:,} requests to Example"):
            limits.set_limits_and_resume(run.pk, request_cap=cap, token_cap=None, confirmed_requests=most - 1)
    run.refresh_from_db()
    assert (run.state, run.request_cap) == (Run.State.PAUSED, 50)
    limits.set_limits_and_resume(run.pk, request_cap=None, token_cap=None, confirmed_requests=3600)
    run.refresh_from_db()
    assert (run.state, run.request_cap) == (Run.State.RUNNING, None)
