"""Estimates of a plan and of the remaining trials of a run."""

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from tests.lab.scripted_runs import build_request
from toolbench.lab.models import Run
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.forecast_page import estimate_plan, estimate_remaining

pytestmark = pytest.mark.django_db


def test_estimate_plan_uses_earlier_trials_of_model() -> None:
    model = make_model()
    request = build_request(model, trials=60, until={"rule": "width"})
    assert estimate_plan(build_plan(request), request) is None
    make_trials(make_cell(make_config(make_run(), model)), **{"pass": 10})
    found = estimate_plan(build_plan(request), request)
    assert found is not None
    assert found.requests is not None
    assert (found.requests.low, found.requests.high) == (20, 120)


def test_estimate_remaining_counts_queued_and_possible_trials() -> None:
    run = make_run(state=Run.State.RUNNING, until={"rule": "width"}, trials_per_cell=40, request_cap=60)
    config = make_config(run)
    make_trials(make_cell(config, error=0.05), **{"pass": 10, "queued": 5})
    make_trials(make_cell(config, "long_arguments_guard", error=0.05, decided="narrow"), **{"pass": 10})
    found = estimate_remaining(run)
    assert found is not None
    assert found.requests is not None
    assert (found.requests.low, found.requests.high, found.capped) == (10, 60, False)
    run.requests_reserved = 30
    capped = estimate_remaining(run)
    assert capped is not None
    assert capped.requests is not None
    assert (capped.requests.high, capped.capped) == (30, True)


def test_estimate_remaining_of_ended_run_is_none() -> None:
    assert estimate_remaining(make_run()) is None
