"""Scenario author: copies a built-in scenario, changes it, runs it on a simulated model and re-judges it."""

from playwright.sync_api import Page, expect

from tests.browsers import ComplaintRecorder
from tests.journeys.clicks import ClickCounter
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Case, Judgement, Model, Trial


def test_scenario_author_copies_runs_and_re_judges_scenario(
    browser_page: Page,
    clicks: ClickCounter,
    catalogue: None,
    personas: None,
    worker: WorkerProcess,
    watch: ComplaintRecorder,
) -> None:
    watch.expected.append("422")
    page, model = browser_page, Model.objects.get(name="perfect")
    page.goto("/scenarios/recovery_busy/")
    page.get_by_role("link", name="Copy as test case").click()
    expect(page.get_by_text("A copy of the scenario recovery_busy")).to_be_visible()
    results = page.get_by_label("Tool results")
    filled = results.input_value()
    assert '"kind": "busy"' in filled

    results.fill('{"track_order": {"template": {"order": "{arguments.order + 1}"}}}')
    page.get_by_role("button", name="Save only").click()
    expect(page.get_by_text("cannot be substituted")).to_be_visible()
    assert not Case.objects.exists()

    results.fill(filled.replace('"fixed": {', '"template": {"asked": "{arguments.order}", ', 1))
    page.get_by_label("Name", exact=True).fill("My busy tool")
    page.get_by_label("Group").fill("orders")
    page.get_by_label("Model", exact=True).select_option(str(model.pk))
    page.get_by_label("Times").fill("4")
    page.get_by_role("button", name="Save and run").click()

    newest = page.locator("tr[data-newest]")
    expect(newest).to_have_attribute("data-finished", "yes", timeout=60_000)
    expect(page.locator("main")).to_contain_text("own_orders")
    expect(newest.locator(".rate").first).to_contain_text("4/4")
    assert set(Trial.objects.values_list("outcome", flat=True)) == {"pass"}

    page.get_by_role("link", name="Edit").click()
    expected = page.get_by_label("Expected")
    expected.fill(expected.input_value().replace('"answer_names": "', '"answer_names": "not '))
    page.get_by_role("button", name="Save version 2").click()
    page.get_by_role("link", name="judge by version 2").click()
    page.get_by_role("button", name="Re-judge").click()
    expect(page.get_by_text("4 trials re-judged, 4 pass → fail. No request was sent.")).to_be_visible()
    assert set(Judgement.objects.filter(current=True).values_list("outcome", flat=True)) == {"fail"}
    assert clicks.count == 9
