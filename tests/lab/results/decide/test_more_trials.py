"""Plan and launch of the missing trials of a decision."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client

from tests.factories import make_model, make_provider
from tests.page_html import read_html
from toolbench.lab.metrics.cells import recompute
from toolbench.lab.metrics.result_filter import ResultFilter
from toolbench.lab.models import Cell, Provider, Run, RunConfig, SamplingProfile
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS, RunRequest
from toolbench.lab.results.compare.choices import get_compare_choices
from toolbench.lab.results.decide.more_trials import get_missing_trials_plan, launch_missing_trials
from toolbench.lab.results.decide.new_trials import NewTrialsError
from toolbench.lab.results.decide.page import DecidePage, get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.runs.launch import launch

pytestmark = pytest.mark.django_db
DEMO = DecideQuery(scope="demo", want="fastest")


def finish_run(run: Run) -> None:
    run.trials.update(state="done", outcome="pass", task_pass=True, duration_ms=F("position") + 100.0)
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)
    recompute(list(run.cells.values_list("pk", flat=True)))


@pytest.fixture
def run() -> Run:
    """Make a run of a simulated model that passed all of 40 trials of two scenarios."""
    model = make_model("perfect", provider=make_provider("Simulated", kind=Provider.Kind.SIMULATED))
    SamplingProfile.objects.create(name="default")
    scenarios = ("happy_path", "missing_workspace_id")
    run = launch(RunRequest(models=(model.pk,), scenarios=scenarios, trials=20, instance_kind="drawn"))
    finish_run(run)
    return run


def get_page(query: DecideQuery = DEMO) -> DecidePage:
    return get_decide_page(query)


def launch_shown_plan(query: DecideQuery, *, confirmed_requests: int = 0) -> Run:
    """Launch the plan that the page shows now."""
    offer = get_missing_trials_plan(get_page(query))
    return launch_missing_trials(
        query, owner=None, shown=offer.shown if offer else "", confirmed_requests=confirmed_requests
    )


def test_launch_missing_trials_decides_after_they_finish(run: Run) -> None:
    assert "it closes with 32 more trials (16 of each scenario)" in get_page().decision.sentence
    offer = get_missing_trials_plan(get_page())
    assert offer
    assert (offer.trials, offer.scenarios, offer.total) == (16, ("happy_path", "missing_workspace_id"), 32)
    planned = launch_shown_plan(DEMO)
    assert planned.trials.count() == 32
    assert not planned.trials.filter(added_by_hand=True).exists()
    assert planned.seed != run.seed
    assert planned.configs.get().policy_hash == run.configs.get().policy_hash
    finish_run(planned)
    found = get_page()
    assert len(found.rows) == 1
    assert (found.rows[0].assessment.measured.tried, found.rows[0].assessment.state) == (72, "qualified")
    assert found.decision.sentence.startswith("Only Simulated · perfect")
    assert found.decision.needs_confirmation
    assert get_missing_trials_plan(found) is None


def test_missing_trials_plan_excludes_pending_trials(run: Run) -> None:
    planned = launch_shown_plan(DEMO)
    assert get_missing_trials_plan(get_page()) is None
    assert get_page().runs_in_progress == (planned.pk,)
    with pytest.raises(NewTrialsError, match="still running"):
        launch_shown_plan(DEMO)


def test_decide_page_names_the_unfinished_run_and_no_newer_one(run: Run) -> None:
    request = RunRequest(models=(run.configs.get().model_id or 0,), scenarios=("happy_path",), instance_kind="drawn")
    unfinished = launch(replace(request, trials=2))
    finish_run(launch(replace(request, trials=1)))
    assert get_page().runs_in_progress == (unfinished.pk,)


def test_missing_trials_plan_of_a_playground_run_has_a_refusal(run: Run) -> None:
    Run.objects.update(purpose=Run.PLAYGROUND)
    page = get_page(replace(DEMO, scope="runs", runs=(run.pk,)))
    offer = get_missing_trials_plan(page)
    assert offer
    assert (offer.request, "Save the conversation as a test case" in offer.refusal) == (None, True)
    assert [offered.pk for offered in page.runs] == [run.pk]


def test_decide_page_of_named_runs_counts_their_missing_trials(run: Run) -> None:
    chosen = replace(DEMO, scope="runs", runs=(run.pk,))
    finish_run(launch_shown_plan(chosen))
    assert get_page(chosen).rows[0].assessment.measured.tried == 72
    assert not any("which it repeats" in offer.title for offer in get_compare_choices().suggestions)


def test_decide_page_with_failed_missing_trials_stays_undecided(run: Run) -> None:
    planned = launch_shown_plan(DEMO)
    finish_run(planned)
    planned.trials.filter(index__lte=3).update(outcome="fail", task_pass=False)
    recompute(list(planned.cells.values_list("pk", flat=True)))
    found = get_page().decision
    assert "comes closest to being the fastest. It is not decided" in found.sentence
    assert found.more or "no number of trials" in found.sentence


def add_newer_version() -> None:
    Cell.objects.update(scenario_version=F("scenario_version") - 1)


def delete_model() -> None:
    RunConfig.objects.update(model=None)


def change_settings() -> None:
    RunConfig.objects.update(policy_hash="another")


EXPECTED_REFUSALS = {
    add_newer_version: "There is a newer version of happy_path, missing_workspace_id",
    delete_model: "its model was deleted, or its run was imported",
    change_settings: "other settings would be tried",
}


@pytest.mark.parametrize("change", EXPECTED_REFUSALS)
def test_missing_trials_plan_that_cannot_launch_has_a_refusal(
    run: Run, change: Callable[[], None], owner_client: Client
) -> None:
    change()
    offer = get_missing_trials_plan(get_page())
    assert offer
    assert offer.request is None
    assert EXPECTED_REFUSALS[change] in offer.refusal
    text = unescape(read_html(owner_client.get("/decide/?scope=demo&want=fastest")))
    assert offer.refusal in text
    assert 'type="submit">Plan' not in text
    with pytest.raises(NewTrialsError, match=EXPECTED_REFUSALS[change]):
        launch_shown_plan(DEMO)


def test_missing_trials_plan_that_would_not_count_new_runs_has_a_refusal(run: Run) -> None:
    today = run.created_at.date()
    Run.objects.update(created_at=F("created_at") - timedelta(days=3))
    for chosen in (ResultFilter(upto=run.pk), ResultFilter(before=today - timedelta(days=1))):
        query = replace(DEMO, chosen=chosen)
        offer = get_missing_trials_plan(get_page(query))
        assert offer
        assert (offer.request, offer.refusal.partition(":")[0]) == (None, "This address counts no new runs")
        with pytest.raises(NewTrialsError, match="counts no new runs"):
            launch_shown_plan(query)
    assert launch_shown_plan(replace(DEMO, chosen=ResultFilter(before=today + timedelta(days=1)))).trial_count == 32


def test_missing_trials_plan_over_the_trial_limit_has_a_refusal(run: Run) -> None:
    run.trials.filter(index=1).update(outcome="fail", task_pass=False)
    recompute(list(run.cells.values_list("pk", flat=True)))
    offer = get_missing_trials_plan(get_page(replace(DEMO, success="94.5")))
    assert offer
    assert offer.trials > MAX_CELL_TRIALS
    assert offer.refusal.endswith("trials of a scenario are missing; at most 2,000 can be planned here.")


def test_launch_missing_trials_refuses_a_plan_that_changed(run: Run) -> None:
    offer = get_missing_trials_plan(get_page())
    assert offer
    run.trials.filter(index=1).update(outcome="fail", task_pass=False)
    recompute(list(run.cells.values_list("pk", flat=True)))
    for shown in (offer.shown, ""):
        with pytest.raises(NewTrialsError, match="Results have changed since this page was shown"):
            launch_missing_trials(DEMO, owner=None, shown=shown)


@pytest.mark.django_db(transaction=True)
def test_launch_missing_trials_called_twice_at_once_launches_one_run(run: Run) -> None:
    offer = get_missing_trials_plan(get_page())
    assert offer
    barrier = threading.Barrier(2)

    def launch_plan(_: int) -> str:
        try:
            barrier.wait()
            return f"run {launch_missing_trials(DEMO, owner=None, shown=offer.shown).pk}"
        except NewTrialsError as error:
            return str(error)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        results = sorted(pool.map(launch_plan, range(2)))
    assert Run.objects.filter(purpose="decide").count() == 1
    assert results[0].startswith("No trials are missing now")
    assert results[1].startswith("run ")


def test_launch_missing_trials_needs_confirmation_of_paid_requests(run: Run) -> None:
    Provider.objects.update(kind=Provider.Kind.OPENAI)
    with pytest.raises(PaidRequestsUnconfirmedError) as raised:
        launch_shown_plan(DEMO)
    assert launch_shown_plan(DEMO, confirmed_requests=raised.value.max_paid_requests).trials.count() == 32
