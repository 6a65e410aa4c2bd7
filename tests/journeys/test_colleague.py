"""Colleagues at one Toolbench: an invited viewer, a cancelled run, and pages opened by name."""

import re

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.journeys.clicks import ClickCounter
from tests.journeys.conftest import StartScriptedServer
from tests.lab.conftest import RunInThread, elsewhere
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session

__all__ = ["elsewhere"]  # a fixture
PAGES_BY_NAME = {
    "matrix": "/matrix/",
    "failures": "/failures/",
    "decide": "/decide/",
    "schedules": "/schedules/",
    "profiles": "/profiles/",
    "providers": "/providers/",
    "gateway": "/gateway/",
}


def test_invited_viewer_reads_pages_and_cannot_change(
    browser_page: Page,
    clicks: ClickCounter,
    catalogue: None,
    browser: Browser,
    live_server: LiveServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "BASE_URL", live_server.url)
    browser_page.goto("/settings/people/")
    browser_page.get_by_label("Name", exact=True).fill("ana")
    browser_page.locator("select[name=role]").first.select_option("viewer")
    browser_page.get_by_role("button", name="Invite").click()
    link = re.search(r"http://\S+/sign-in/[\w-]+/", browser_page.locator("main").inner_text())
    assert link is not None

    context = browser.new_context(base_url=live_server.url)
    page = context.new_page()
    page.goto(link[0])
    page.goto("/runs/")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    expect(page.get_by_role("banner").get_by_role("link", name="New run")).to_have_count(0)
    answer = page.goto("/providers/new/")
    assert answer is not None
    assert answer.status == 403
    context.close()
    assert clicks.count == 3


def test_cancelled_run_resumes_exactly_its_cancelled_trials(
    browser_page: Page, clicks: ClickCounter, catalogue: None, start_server: StartScriptedServer, elsewhere: RunInThread
) -> None:
    provider = start_server(answer_correctly)
    model = make_scripted_model(provider)
    run = launch_run(model, trials=4)
    browser_page.goto(f"/runs/{run.pk}/")
    browser_page.get_by_role("button", name="Cancel run").click()
    elsewhere(run_worker_session, model).result()
    assert provider.seen == []

    browser_page.goto(f"/runs/{run.pk}/")
    browser_page.get_by_role("button", name="Resume the 4 cancelled trials").click()
    expect(browser_page.get_by_role("button", name="Cancel run")).to_be_visible()
    assert elsewhere(run_worker_session, model).result() == 4

    browser_page.goto(f"/runs/{run.pk}/")
    expect(browser_page.locator("main")).to_contain_text("4 pass")
    assert set(run.trials.values_list("outcome", "execution")) == {("pass", 1)}
    expect(browser_page.locator("main")).not_to_contain_text("added manually")
    assert clicks.count == 2


@pytest.mark.django_db(transaction=True)
def test_palette_opens_page_by_name(browser_page: Page, clicks: ClickCounter, live_server: LiveServer) -> None:
    browser_page.goto("/")
    for name, path in PAGES_BY_NAME.items():
        browser_page.keyboard.press("Control+k")
        palette = browser_page.get_by_role("dialog", name="Search or jump to")
        palette.get_by_role("searchbox").fill(name)
        palette.locator(f'a[href="{path}"]').last.click()
        expect(browser_page).to_have_url(f"{live_server.url}{path}")
        browser_page.wait_for_load_state()  # the key works once the page has read its scripts
    assert clicks.count == len(PAGES_BY_NAME)


def wait_for_two_frames(page: Page) -> None:
    page.evaluate("() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")


@pytest.mark.django_db(transaction=True)
def test_palette_follows_pressed_link_although_results_change(browser_page: Page, live_server: LiveServer) -> None:
    browser_page.goto("/")
    browser_page.keyboard.press("Control+k")
    palette = browser_page.get_by_role("dialog", name="Search or jump to")
    with browser_page.expect_response(lambda response: response.url.endswith("?q=profiles")) as answer:
        palette.get_by_role("searchbox").fill("profiles")
    answer.value.finished()
    wait_for_two_frames(browser_page)  # otherwise this answer could move the link between the hover and the press
    link = palette.locator('a[href="/profiles/"]')
    expect(link).to_have_count(1)
    link.hover()
    browser_page.mouse.down()
    with browser_page.expect_response(lambda response: response.url.endswith("?q=providers")) as answer:
        palette.get_by_role("searchbox").evaluate(
            "input => { input.value = 'providers'; input.dispatchEvent(new Event('input')); }"
        )
    answer.value.finished()
    wait_for_two_frames(browser_page)
    browser_page.mouse.up()
    expect(browser_page).to_have_url(f"{live_server.url}/profiles/")
