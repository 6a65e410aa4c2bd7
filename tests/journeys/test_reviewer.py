"""Reviewer with a keyboard: from the matrix to the first bad step, and a link that shows a colleague the same step."""

from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browsers import ComplaintRecorder
from tests.journeys.run_form import RunForm, start_run, wait_until_finished
from tests.worker_process import WorkerProcess
from toolbench.lab.accounts.sign_in import create_token


def go_to_first_bad_step(page: Page) -> int:
    """Go from the matrix to the first bad step by keys, and return the number of keys pressed."""
    keys: list[str] = []

    def press(key: str) -> None:
        keys.append(key)
        page.keyboard.press(key)

    page.goto("/matrix/?scope=demo&view=bars")
    expect(page.locator("[data-matrix] a.cell")).to_have_count(1)
    press("ArrowDown")
    press("Enter")
    expect(page.get_by_role("heading", name="Trials of the row, failed first")).to_be_visible()
    page.wait_for_load_state()  # keys work once the page has read its scripts
    press("f")
    expect(page.locator(".verdict.fail")).to_be_visible()
    page.wait_for_load_state()
    press("b")
    page.wait_for_url("**step=**")
    return len(keys)


def test_reviewer_reaches_first_bad_step_in_four_keys_and_shares_link(
    browser_page: Page,
    browser: Browser,
    live_server: LiveServer,
    watch: ComplaintRecorder,
    personas: None,
    worker: WorkerProcess,
) -> None:
    page = browser_page
    start_run(page, RunForm(models=("bracket-storm",), trials=2))
    wait_until_finished(page, 2)

    assert go_to_first_bad_step(page) <= 4
    expect(page.locator('.timeline a[aria-current="step"].bad')).to_be_visible()
    step = page.locator("#step h2").inner_text()
    address = page.url

    fresh = browser.new_context(base_url=live_server.url)
    watch.over(fresh)
    colleague = fresh.new_page()
    colleague.goto(address)
    expect(colleague.get_by_role("heading", name="Sign in")).to_be_visible()
    colleague.goto(f"/sign-in/{create_token()}/")
    colleague.goto(address)
    expect(colleague.locator("#step h2")).to_have_text(step)
    expect(colleague.locator('.timeline a[aria-current="step"].bad')).to_be_visible()
    fresh.close()
