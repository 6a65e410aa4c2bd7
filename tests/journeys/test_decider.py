"""Decider: chooses between two models; the faster one is refused because it loses trials."""

from playwright.sync_api import Page, expect

from tests.journeys.run_form import RunForm, start_run, wait_until_finished
from tests.worker_process import WorkerProcess
from toolbench.lab.models import DecisionRecord, Run

RUN_FORM = RunForm(models=("perfect", "fast-429"), trials=90)


def test_decider_refuses_fast_model_that_loses_trials(
    browser_page: Page, personas: None, worker: WorkerProcess
) -> None:
    page = browser_page
    start_run(page, RUN_FORM)
    wait_until_finished(page, 180)

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Results").click()
    page.get_by_role("navigation", name="Results").get_by_role("link", name="Decide").click()
    page.get_by_role("link", name="Simulated", exact=True).last.click()
    page.get_by_label("Choose the").select_option("fastest")
    page.get_by_role("button", name="Decide", exact=True).click()

    expect(page.locator(".answer")).to_contain_text("Only Simulated · perfect")
    refused = page.get_by_role("row").filter(has_text="fast-429")
    expect(refused).to_contain_text("It has too many trials without an answer:")
    expect(refused).to_contain_text("rate_limited ×")
    expect(page.locator("svg.scatter.wide .point").first).to_be_visible()

    page.get_by_label("Name", exact=True).fill("For the demo bot")
    page.get_by_role("button", name="Save decision").click()
    expect(page.get_by_role("heading", name="For the demo bot")).to_be_visible()
    page.get_by_role("button", name="Confirm on new trials").click()
    expect(page.get_by_text("only its result will be reported")).to_be_visible()
    record, run = DecisionRecord.objects.get(), Run.objects.get(purpose="confirm")
    assert record.confirmation == run
    assert run.configs.get().model_name == "perfect"
