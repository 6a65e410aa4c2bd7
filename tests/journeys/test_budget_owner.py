"""Whoever pays: a cap is never passed by a single request, and what it stopped goes on when it is raised."""

from playwright.sync_api import Page, expect

from tests.journeys.conftest import Scripting
from tests.journeys.planning import Wish, finished, start
from tests.lab.benches import plays_well, scripted_model
from tests.workers import WorkerProcess
from toolbench.lab.models import Run

TRIALS = 40  # of three requests each


def test_a_cap_of_100_requests_holds_and_the_run_ends_when_it_is_raised(
    browser_page: Page, catalogue: None, scripting: Scripting, worker: WorkerProcess
) -> None:
    page, provider = browser_page, scripting(plays_well)
    scripted_model(provider, "paid")
    start(page, Wish(models=("paid",), trials=TRIALS, request_cap=100))

    expect(page.get_by_text("Paused: The cap of 100 requests is reached")).to_be_visible()
    run = Run.objects.get()
    assert len(provider.seen) == run.requests_reserved == 100
    kept = set(run.trials.filter(outcome="pass").values_list("pk", "finished_at"))
    assert kept

    page.get_by_label("Requests, 100 used").fill("300")
    page.get_by_role("button", name="Raise the cap and resume").click()

    finished(page, TRIALS)
    expect(page.locator("#live")).to_contain_text("Finished since")
    run.refresh_from_db()
    assert run.trials.filter(outcome="pass").count() == TRIALS
    assert kept <= set(run.trials.values_list("pk", "finished_at"))
    assert len(provider.seen) == run.requests_reserved <= 300
