"""Scripts of the pages: answers that cannot be read, keys and copies that are repeated."""

import re

import pytest
from playwright.sync_api import Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from tests.factories import make_cell, make_config, make_model, make_run, make_trials
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def measured() -> None:
    """A run with passed and failed trials of two models."""
    run = make_run()
    for name in ("vendor/a", "vendor/b"):
        make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 9, "fail": 1})


def answer_as_signed_out(route: Route) -> None:
    """Answer with a page that has no trials, as after the end of the session."""
    route.fulfill(content_type="text/html", body="Sign in")


def test_grid_panel_links_lead_to_trials(measured: None, browser_page: Page) -> None:
    browser_page.goto("/matrix/")
    browser_page.locator("td.c > a").first.click()
    browser_page.locator("#panel").get_by_role("link", name="Outcome").click()
    expect(browser_page).to_have_url(re.compile(r"/trials/\?.*sort="))


def test_grid_key_of_failed_trial_needs_open_panel(measured: None, browser_page: Page) -> None:
    browser_page.goto("/matrix/")
    browser_page.locator("td.c > a").first.click()
    panel = browser_page.locator("#panel")
    expect(panel.locator("a[data-failed]")).to_be_visible()
    browser_page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    browser_page.keyboard.press("f")
    browser_page.locator("td.c > a").first.click()
    expect(panel.locator("a[data-failed]")).to_be_visible()  # still the matrix, whose panel opens again
    browser_page.keyboard.press("f")
    expect(browser_page).to_have_url(re.compile(r"/trials/\d+/"))


def test_grid_panel_says_that_trials_cannot_be_read(measured: None, browser_page: Page) -> None:
    browser_page.goto("/matrix/")
    browser_page.route(re.compile(r"/trials/\?"), answer_as_signed_out)
    browser_page.locator("td.c > a").first.click()
    expect(browser_page.locator("#panel")).to_contain_text("The trials could not be read. Open the link.")


def test_trial_list_says_that_search_cannot_be_read(measured: None, browser_page: Page) -> None:
    browser_page.goto("/trials/")
    browser_page.route(re.compile(r"/trials/\?"), answer_as_signed_out)
    browser_page.locator("#search").press_sequentially("outcome:fail")
    expect(browser_page.locator("[data-total]")).to_have_text(
        "The trials could not be read. Press Enter to search again."
    )


def test_number_key_opens_tab_with_chosen_filter(measured: None, browser_page: Page) -> None:
    browser_page.goto("/trials/")
    browser_page.locator(".chips summary", has_text="Models").click()
    browser_page.get_by_label("vendor/b").check()
    expect(browser_page.locator(".tabs a", has_text="Failures")).to_have_attribute("href", re.compile("model=vendor"))
    browser_page.locator("h1").click()
    browser_page.keyboard.press("3")
    expect(browser_page).to_have_url(re.compile(r"/failures/\?model=vendor%2Fb$"))


def test_copy_link_pressed_twice_gets_its_label_again(measured: None, browser_page: Page) -> None:
    browser_page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    browser_page.goto("/matrix/")
    browser_page.locator("summary", has_text="Share").click()
    link = browser_page.locator(".tab-tools a[data-copy]").first
    link.click()
    expect(link).to_have_text("Copied")
    link.click()
    expect(link).to_have_text("Copy live address")
    browser_page.wait_for_timeout(1_600)  # the second click restores the label later
    expect(link).to_have_text("Copy live address")


def test_copy_link_without_permission_opens_its_page(measured: None, browser_page: Page) -> None:
    browser_page.goto("/matrix/")
    browser_page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); }")
    browser_page.locator("summary", has_text="Share").click()
    browser_page.locator(".tab-tools a[data-copy*=upto]").click()
    expect(browser_page).to_have_url(re.compile(r"/matrix/\?upto=\d+$"))


def test_palette_after_end_of_session_leads_to_sign_in(browser_page: Page, live_server: LiveServer) -> None:
    browser_page.goto("/runs/")
    browser_page.context.clear_cookies()
    browser_page.keyboard.press("Control+k")
    palette = browser_page.get_by_role("dialog", name="Search or jump to")
    with browser_page.expect_response(re.compile("/search/")):
        palette.get_by_role("searchbox").fill("presets")
    expect(palette.get_by_role("link")).to_have_count(0)
    browser_page.keyboard.press("Enter")
    expect(browser_page).to_have_url(re.compile(rf"{live_server.url}/sign-in/\?next=/search/"))


def test_live_part_after_end_of_session_leads_to_sign_in(browser_page: Page) -> None:
    run = make_run(state=Run.State.RUNNING)
    make_cell(make_config(run))
    browser_page.goto(f"/runs/{run.pk}/")
    browser_page.context.clear_cookies()
    expect(browser_page).to_have_url(re.compile(rf"/sign-in/\?next=/runs/{run.pk}/$"))


def test_form_is_sent_once_if_its_button_is_pressed_twice(browser_page: Page) -> None:
    browser_page.goto("/settings/tokens/")
    browser_page.get_by_label("Name").fill("nightly check")
    submissions = browser_page.evaluate(
        """() => {
            let sent = 0;
            window.addEventListener("submit", (event) => {
                sent += event.defaultPrevented ? 0 : 1;
                event.preventDefault();
            });
            const form = document.querySelector("main form");
            form.requestSubmit();
            form.requestSubmit();
            return sent;
        }"""
    )
    assert submissions == 1


def test_button_of_live_part_keeps_its_press(browser_page: Page) -> None:
    run = make_run(state=Run.State.RUNNING)
    make_cell(make_config(run))
    browser_page.goto(f"/runs/{run.pk}/")
    browser_page.get_by_role("button", name="Pause").hover()
    browser_page.mouse.down()
    with browser_page.expect_response(re.compile(f"/runs/{run.pk}/$")):
        pass
    browser_page.wait_for_timeout(100)  # the answer would replace the button
    browser_page.mouse.up()
    expect(browser_page.get_by_text("Paused: running trials finish")).to_be_visible()


def test_palette_follows_result_of_whole_typed_text(browser_page: Page) -> None:
    browser_page.goto("/runs/")
    browser_page.keyboard.press("Control+k")
    palette = browser_page.get_by_role("dialog", name="Search or jump to")
    expect(palette.get_by_role("link", name="New run")).to_be_visible()
    palette.get_by_role("searchbox").fill("presets")
    browser_page.keyboard.press("Enter")
    expect(browser_page).to_have_url(re.compile("/presets/$"))
