"""Trials that a worker session fetches within the monthly budget of the provider, and its pace."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.lab.scripted_runs import launch_run, make_paid_model, make_scripted_model, run_worker_session
from toolbench.lab.models import Model, Provider, Run
from toolbench.lab.planning.run_request import LaunchError
from toolbench.lab.results.run.page import get_run_page
from toolbench.lab.runs import control
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.worker.fetching import TrialFetcher
from toolbench.lab.worker.pacing.state import PaceSettings
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)

# Three requests of 10 and 5 tokens at 1,000 dollars for a million tokens: 0.045 dollars a trial.
PRICE = {"input": 1000.0, "output": 1000.0, "date": "2026-01-01", "source": "entered"}


def make_model_with_budget(scripted: ScriptedServer, dollars: float) -> Model:
    model = make_paid_model(scripted, concurrency=1, budget_per_month=dollars)
    Model.objects.update(price=PRICE)
    return model


def count_done(run: Run) -> int:
    return run.trials.filter(state="done").count()


def test_session_at_monthly_budget_continues_after_raise(scripted: ScriptedServer) -> None:
    model = make_model_with_budget(scripted, 0.2)
    run = launch_run(model, trials=12)
    run_worker_session(model)
    assert count_done(run) == 5
    run.refresh_from_db()
    assert run.state == Run.State.RUNNING
    (blocking,) = get_run_page(run.pk).blocking_providers
    assert "scripted has spent $0.2250 of its budget of $0.2000" in blocking.state_text

    Provider.objects.update(budget_per_month=5.0)
    run_worker_session(model)
    assert count_done(run) == 12
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED


def test_session_at_monthly_budget_continues_next_month(scripted: ScriptedServer) -> None:
    model = make_model_with_budget(scripted, 0.2)
    run = launch_run(model, trials=8)
    run_worker_session(model)
    assert count_done(run) == 5
    run.trials.filter(state="done").update(finished_at=timezone.now() - timedelta(days=32))
    run_worker_session(model)
    assert count_done(run) == 8


def test_launch_add_trials_and_repeat_are_refused_at_monthly_budget(scripted: ScriptedServer) -> None:
    model = make_model_with_budget(scripted, 0.1)
    run = launch_run(model, trials=3)
    run_worker_session(model)
    assert count_done(run) == 3
    with pytest.raises(LaunchError, match="scripted has spent"):
        launch_run(model)
    for action in (
        lambda: control.add_trials(run.pk, run.cells.get().pk, 1),
        lambda: control.start_repeat(run.pk, owner=None),
    ):
        with pytest.raises(RunActionError, match=r"Nothing was queued\. scripted has spent"):
            action()
    assert Run.objects.count() == 1
    assert run.trials.count() == 3


def test_trial_fetcher_unusable_provider_still_returns_pace(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, requests_per_minute=60, key_source="environment", key_env="NO_SUCH_KEY")
    fetcher = TrialFetcher(model.provider_id)
    assert fetcher.get_access() is None
    assert fetcher.get_pace() == PaceSettings(max_concurrency=8, requests_per_minute=60)
    Provider.objects.update(requests_per_minute=30)
    assert TrialFetcher(model.provider_id).get_pace() == PaceSettings(max_concurrency=8, requests_per_minute=30)
    Provider.objects.update(key_source="none", budget_per_month=0.0)
    fetcher_over_budget = TrialFetcher(model.provider_id)
    assert (fetcher_over_budget.get_access(), fetcher_over_budget.get_pace()) == (
        None,
        PaceSettings(max_concurrency=8, requests_per_minute=30),
    )
    assert TrialFetcher(model.provider_id + 1).get_pace() is None
