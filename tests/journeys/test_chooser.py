"""Chooser between models of an own server: from its address to the cause of a failure, and by a query."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.factories import make_cell, make_config, make_run, make_trials
from tests.journeys.clicks import ClickCounter
from tests.journeys.conftest import StartScriptedServer
from tests.journeys.run_form import wait_until_finished
from tests.lab.conftest import RunInThread, elsewhere
from tests.lab.results.failures.test_page import make_failed_trial
from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Trial
from toolbench.lab.traces.search_text import update_search_texts
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    json_reply,
    text_reply,
    tool_call_reply,
)

__all__ = ["elsewhere"]  # a fixture
MODELS = {"object": "list", "data": [{"id": "acme/talker"}, {"id": "acme/other"}]}
MAX_CLICKS = 12
TYPICAL_CELLS = 5


def never_call_a_tool(seen: ReceivedRequest) -> ScriptedReply:
    return json_reply(MODELS) if seen.path.endswith("/models") else text_reply("I would rather talk about it.")


def name_another_city(seen: ReceivedRequest) -> ScriptedReply:
    return tool_call_reply(("get_weather", {"city": "Atlantis"}))


def test_chooser_reaches_cause_from_own_provider_in_12_clicks(
    browser_page: Page, clicks: ClickCounter, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page, provider = browser_page, start_server(never_call_a_tool)
    page.goto("/")
    page.get_by_label("Service").select_option(label="Other endpoint")
    page.get_by_label("Address").fill(provider.base_url)
    page.get_by_role("button", name="Connect and list its models").click()
    page.get_by_label("acme/talker").click()
    page.get_by_role("button", name="Add").click()
    page.get_by_role("link", name="Plan a run of its models").click()
    page.get_by_label("Trials for each scenario").fill("2")
    page.get_by_role("button", name=f"Start {TYPICAL_CELLS * 2} trials").click()
    wait_until_finished(page, TYPICAL_CELLS * 2)
    page.locator("table.grid tbody td.c a").first.click()
    page.locator("#panel tbody a").first.click()

    expect(page.locator(".verdict .mark.fail")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("The model answered in text although a call was still needed.")
    assert clicks.count <= MAX_CLICKS


def test_chooser_query_finds_wrong_city_of_last_hour(
    browser_page: Page, clicks: ClickCounter, catalogue: None, start_server: StartScriptedServer, elsewhere: RunInThread
) -> None:
    models = [make_scripted_model(start_server(name_another_city), f"acme/{name}") for name in ("x", "other")]
    run = launch_run(*models, scenarios=("weather",), trials=3)
    for model in models:
        assert elsewhere(run_worker_session, model).result() == 3
    of_x = run.trials.filter(config__model_name="acme/x").order_by("pk")
    Trial.objects.filter(pk=of_x[0].pk).update(started_at=timezone.now() - timedelta(hours=2))

    update_search_texts()
    browser_page.goto("/trials/")
    query = browser_page.get_by_label("Query", exact=True)
    query.fill('model:acme/x started>1h "$.city is"')
    query.press("Enter")

    expect(browser_page.locator("main")).to_contain_text("2 trials match")
    for trial in of_x[1:]:
        expect(browser_page.get_by_role("link", name=str(trial.pk), exact=True)).to_be_visible()
    assert clicks.count == 0


def test_chooser_on_phone_opens_failed_trial_in_two_clicks(
    browser_page: Page, clicks: ClickCounter, catalogue: None
) -> None:
    page = browser_page
    make_trials(make_cell(make_config(make_run())), **{"pass": 9, "fail": 1})
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/matrix/")
    page.locator("table.grid tbody td.c a").first.click()
    page.locator("#panel tbody a").first.click()

    expect(page.locator(".verdict .mark.fail")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert clicks.count == 2


def test_failures_of_one_model_leave_no_wide_first_column(browser_page: Page, catalogue: None) -> None:
    make_failed_trial(make_run(), "acme/x", "no_call")
    browser_page.goto("/failures/")
    cause = browser_page.locator(".heat-map tbody th")
    expect(cause).to_be_visible()
    assert cause.evaluate("element => element.offsetWidth <= parseFloat(getComputedStyle(element).maxWidth)")
