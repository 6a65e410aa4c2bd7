"""Budget owner: the request limit of a run, and the confirmation of paid requests."""

from playwright.sync_api import Page, expect

from tests.journeys.conftest import StartScriptedServer
from tests.journeys.run_form import RunForm, fill_form, start_run, wait_until_finished, wait_until_idle
from tests.lab.scripted_runs import answer_correctly, make_paid_model
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Run

TRIALS = 40  # of three requests each


def test_budget_owner_request_limit_holds_until_it_is_raised(
    browser_page: Page, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page, provider = browser_page, start_server(answer_correctly)
    make_paid_model(provider, "paid")
    start_run(page, RunForm(models=("paid",), trials=TRIALS, request_cap=100))

    expect(page.get_by_text("The limit of 100 requests is reached")).to_be_visible()
    wait_until_idle(page)
    run = Run.objects.get()
    assert len(provider.seen) == run.requests_reserved == 100
    kept = set(run.trials.filter(outcome="pass").values_list("pk", "finished_at"))
    assert kept

    page.get_by_label("Requests, 100 used").fill("300")
    page.get_by_role("button", name="Raise the limit and resume").click()

    wait_until_finished(page, TRIALS)
    expect(page.locator("#live .lede")).to_contain_text("Finished")
    run.refresh_from_db()
    assert run.trials.filter(outcome="pass").count() == TRIALS
    assert kept <= set(run.trials.values_list("pk", "finished_at"))
    assert len(provider.seen) == run.requests_reserved <= 300


def test_budget_owner_confirms_changed_estimate_again(
    browser_page: Page, catalogue: None, start_server: StartScriptedServer
) -> None:
    page = browser_page
    make_paid_model(start_server(answer_correctly), "paid")
    fill_form(page, RunForm(models=("paid",), trials=TRIALS))
    page.get_by_role("button", name="Start").click()
    agree = page.get_by_label("Send paid requests")

    with page.expect_response("**/runs/new/?*"):
        agree.check()
    expect(agree).to_be_checked()
    with page.expect_response("**/runs/new/?*"):
        page.get_by_label("Trials for each scenario").fill("60")
    expect(page.get_by_role("button", name="Start 60 trials")).to_be_visible()
    expect(agree).not_to_be_checked()
    page.get_by_role("button", name="Start").click()

    expect(page.get_by_text("Nothing was sent yet.")).to_be_visible()
    assert not Run.objects.exists()
