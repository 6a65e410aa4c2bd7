"""Browser without JavaScript: every action is a plain form or a link."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browsers import TIMEOUT_MS, ComplaintRecorder
from tests.factories import make_cell, make_config, make_run, make_trials
from tests.journeys.conftest import StartScriptedServer
from tests.journeys.run_form import RunForm, fill_form, start_run, wait_until_finished
from tests.lab.scripted_runs import answer_correctly, make_scripted_model
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Provider, Run
from toolbench.providers.scripted_server import ConnectionEnd, ReceivedRequest, ScriptedReply, json_reply, text_reply


@pytest.fixture
def plain_page(
    browser: Browser, live_server: LiveServer, owner_client: Client, watch: ComplaintRecorder
) -> Iterator[Page]:
    """Page of the owner in a browser without JavaScript."""
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    context.set_default_timeout(TIMEOUT_MS)
    name = settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": owner_client.cookies[name].value, "url": live_server.url}])
    watch.over(context)
    yield context.new_page()
    context.close()
    assert watch.unexpected() == []


def reply_without_call(seen: ReceivedRequest) -> ScriptedReply:
    listed = json_reply({"data": [{"id": "plain/model"}]})
    return listed if seen.path.endswith("/models") else text_reply("No call from me.")


def test_run_is_planned_and_read_without_javascript(
    plain_page: Page, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page = plain_page
    make_scripted_model(start_server(reply_without_call), "talker")
    fill_form(page, RunForm(models=("talker",), trials=3))
    page.get_by_role("button", name="Update plan").click()
    expect(page.get_by_role("complementary", name="Plan summary")).to_contain_text("3 trials")
    assert not Run.objects.exists()

    page.get_by_role("button", name="Start 3 trials").click()
    wait_until_finished(page, 3)
    page.get_by_role("link", name="All trials").click()
    page.get_by_role("complementary", name="Narrow the list").get_by_role("link", name="fail").click()
    expect(page.locator("[data-rows] tbody tr")).to_have_count(3)
    page.locator("[data-rows] tbody a").first.click()
    expect(page.locator(".verdict.fail")).to_be_visible()
    page.locator(".timeline a.step").first.click()
    expect(page.locator("#step")).to_be_visible()
    page.get_by_role("textbox", name="Note").fill("seen without a script")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("textbox", name="Note")).to_have_value("seen without a script")


def test_run_is_cancelled_without_javascript(
    plain_page: Page, catalogue: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page = plain_page
    make_scripted_model(
        start_server(lambda seen: ScriptedReply(body=b"{", declared=9, ending=ConnectionEnd.HANG)), "silent"
    )
    start_run(page, RunForm(models=("silent",), trials=5))

    page.get_by_role("button", name="Cancel run").click()

    expect(page.get_by_text("Cancelling: requests in flight are dropped")).to_be_visible()
    wait_until_finished(page, 5)
    assert set(Run.objects.get().trials.values_list("outcome", flat=True)) == {"cancelled"}


def test_provider_is_connected_edited_deleted_without_javascript(
    plain_page: Page, catalogue: None, start_server: StartScriptedServer
) -> None:
    page = plain_page
    page.goto("/providers/new/")
    page.get_by_label("Name").fill("Plain")
    page.get_by_label("Address", exact=True).fill(start_server(reply_without_call).base_url)
    page.get_by_role("button", name="Connect and list its models").click()
    page.get_by_label("plain/model").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("1 model added")).to_be_visible()

    page.get_by_text("Limits, timeouts, headers, defaults").click()
    page.get_by_label("Concurrency limit", exact=True).fill("3")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert Provider.objects.get(name="Plain").concurrency == 3

    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Plain is deleted. Its runs and trials are kept.")).to_be_visible()


def test_theme_is_switched_without_javascript(plain_page: Page, catalogue: None) -> None:
    plain_page.goto("/runs/")
    plain_page.locator(".account > summary").click()
    plain_page.get_by_role("button", name="Dark").click()

    expect(plain_page.locator("html")).to_have_attribute("data-theme", "dark")
    plain_page.locator(".account > summary").click()
    expect(plain_page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert plain_page.url.endswith("/runs/")


def test_matrix_row_opens_by_link_without_javascript(
    plain_page: Page, personas: None, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page = plain_page
    make_scripted_model(start_server(answer_correctly), "solver")
    start_run(page, RunForm(models=("solver",), trials=1))
    wait_until_finished(page, 1)
    page.get_by_role("link", name="Matrix of this run").click()

    page.get_by_role("table").get_by_role("link", name="solver").click()

    expect(page.get_by_role("heading", name="Trials of the row, failed first")).to_be_visible()


def test_columns_and_density_are_chosen_without_javascript(plain_page: Page, catalogue: None) -> None:
    page = plain_page
    make_trials(make_cell(make_config(make_run())), **{"pass": 1, "fail": 1})
    page.goto("/trials/?outcome=fail")
    page.get_by_text("Columns", exact=True).first.click()
    page.get_by_label("Path", exact=True).uncheck()
    page.get_by_label("Comfortable").check()
    page.get_by_role("button", name="Show these").click()
    expect(page.locator("table.dense.comfortable thead .col-got")).to_be_visible()
    expect(page.locator(".col-path")).to_have_count(0)
    expect(page.locator("[data-rows] tbody tr")).to_have_count(1)
    expect(page.locator("[data-peek-open]").first).to_be_hidden()

    page.get_by_role("link", name="Matrix", exact=True).click()
    page.get_by_text("Columns", exact=True).click()
    expect(page.get_by_label("Comfortable")).to_be_checked()
    page.get_by_label("p99 latency").check()
    page.get_by_role("button", name="Show these").click()
    expect(page.locator("#sort-p99")).to_be_visible()
