"""Newcomer: from the printed link to an own provider, a first run and a failed trial."""

from io import StringIO

import pytest
from django.core.management import call_command
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browsers import ComplaintRecorder
from tests.journeys.conftest import StartScriptedServer
from tests.journeys.run_form import RunForm, start_run, wait_until_finished
from tests.worker_process import WorkerProcess
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, error_reply, json_reply, text_reply

MODELS = {"object": "list", "data": [{"id": "acme/talker"}, {"id": "acme/other"}]}
KEY = "sk-of-the-newcomer"


def reply_without_call(seen: ReceivedRequest) -> ScriptedReply:
    """Reply with a list of two models, and with prose to a chat. A request without the right key gets 401."""
    if seen.headers.get("authorization") != f"Bearer {KEY}":
        return error_reply(401, "Incorrect API key provided")
    return json_reply(MODELS) if seen.path.endswith("/models") else text_reply("I would rather talk about it.")


@pytest.fixture
def link(live_server: LiveServer, catalogue: None) -> str:
    """The link that `make up` prints."""
    printed = StringIO()
    call_command("link", base=live_server.url, stdout=printed, stderr=StringIO())
    return printed.getvalue().strip()


def test_newcomer_printed_link_opens_first_page_with_all_regions(visitor_page: Page, link: str) -> None:
    visitor_page.goto(link)

    headings = visitor_page.locator("main h2")
    expect(headings).to_contain_text(
        [
            "Connect a provider",
            "Local demonstration",
            "Published snapshot",
            "Newest failed trials",
        ]
    )
    expect(visitor_page.get_by_text("February 2026, not measured here", exact=True)).to_be_visible()
    expect(visitor_page.get_by_text("Getting ready")).to_be_visible()  # no local model runs in this test
    expect(visitor_page.get_by_role("link", name="Simulated").first).to_be_visible()


def test_newcomer_sign_in_link_works_once(
    visitor_page: Page, link: str, browser: Browser, watch: ComplaintRecorder
) -> None:
    visitor_page.goto(link)
    other_context = browser.new_context()
    second = other_context.new_page()

    answer = second.goto(link)

    assert answer is not None
    assert answer.status == 410
    expect(second.get_by_role("alert")).to_contain_text("This link was used already")
    expect(second.get_by_text("make link", exact=True)).to_be_visible()
    other_context.close()


def test_newcomer_reaches_failed_trial_from_pasted_key(
    visitor_page: Page, link: str, start_server: StartScriptedServer, worker: WorkerProcess
) -> None:
    page, provider = visitor_page, start_server(reply_without_call)
    page.goto(link)
    page.get_by_role("textbox", name="Key").fill(KEY)
    page.get_by_label("Service").select_option(label="Other endpoint")
    page.get_by_label("Address").fill(provider.base_url)
    page.get_by_role("button", name="Connect and list its models").click()

    expect(page.locator("input[name=name]")).to_have_count(2)
    page.get_by_label("acme/talker").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("1 model added")).to_be_visible()
    start_run(page, RunForm(models=("acme/talker",), trials=2))
    wait_until_finished(page, 2)
    page.get_by_role("link", name="open", exact=True).click()

    expect(page.locator(".verdict .mark.fail")).to_be_visible()
    expect(page.locator(".turn.assistant").first).to_be_visible()
    assert KEY not in page.content()
    page.goto("/")
    expect(page.get_by_role("region", name="Newest failed trials").get_by_role("listitem")).to_have_count(1)
