"""Every page in both themes and at two widths: serious and critical findings of axe-core, and too wide pages."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.test import Client
from django.urls import resolve
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from benchmarks.shots import THEMES, WIDTHS, list_pages
from tests.lab.conftest import RunInThread, elsewhere
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from tests.site_addresses import build_addresses, make_one_of_everything
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.cases.conversations import MessageSettings, build_message_request, parse_message, save_message
from toolbench.lab.cases.drafts import CaseDraft, parse_draft
from toolbench.lab.cases.edit import add_case
from toolbench.lab.library.presets import create_preset
from toolbench.lab.library.profiles import create_profile
from toolbench.lab.runs.launch import launch
from toolbench.providers.scripted_server import ScriptedServer, text_reply

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
TOOLS = '[{"type": "function", "function": {"name": "cancel_order", "parameters": {"type": "object"}}}]'
UNREACHABLE_URL = "http://127.0.0.1:9"  # without a listener
# A link is shown only when it is created; the export without chosen sides is an error page; the first profile
# of the list is built in, and the deletion of a preset has the same template.
NOT_LISTED = {"shared", "sign-in-link", "compare-export", "profile-delete"}
REFUSED_IMPACTS = ("serious", "critical")

__all__ = ["elsewhere"]  # a fixture


@pytest.fixture
def addresses(elsewhere: RunInThread) -> dict[str, str]:
    """Make a run of a good and a bad model and one row of everything else; return the URLs."""
    load_builtin_data()
    with (
        ScriptedServer(answer_correctly) as passing_server,
        ScriptedServer(lambda seen: text_reply("No.")) as failing_server,
    ):
        models = [make_scripted_model(passing_server, "good"), make_scripted_model(failing_server, "poor")]
        launch_run(*models, scenarios=("happy_path", "long_arguments_guard", "chat_only"), trials=2)
        for model in models:
            assert elsewhere(run_worker_session, model).result() == 6
        conversation = save_message(*parse_message(CaseDraft(tools=TOOLS, message="Cancel order 17."), "", None))
        message = build_message_request(conversation, MessageSettings(models[1].pk, trials=2), None)
        assert message is not None
        launch(message)
        assert elsewhere(run_worker_session, models[1]).result() == 2
    create_profile("a-profile", {"options": {"temperature": 0.2}}, "owner")
    create_preset("a-preset", {"patch": {"max_turns": 6}}, "owner")
    draft = CaseDraft(tools=TOOLS, message="Cancel order 17.", expect='{"name": "cancel_order", "arguments": {}}')
    add_case(*parse_draft(draft))
    return build_addresses(make_one_of_everything(UNREACHABLE_URL))


@pytest.fixture(params=[(width, theme) for width in WIDTHS for theme in THEMES], ids=str)
def page(
    request: pytest.FixtureRequest, browser: Browser, live_server: LiveServer, owner_client: Client
) -> Iterator[Page]:
    """Open the site at one width and theme, signed in, with scripts of axe-core allowed."""
    width, theme = request.param
    context = browser.new_context(
        base_url=live_server.url,
        viewport={"width": width, "height": WIDTHS[width]},
        color_scheme=theme,
        bypass_csp=True,
    )
    name = settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": owner_client.cookies[name].value, "url": live_server.url}])
    yield context.new_page()
    context.close()


def test_site_pages_have_no_serious_finding_and_fit_the_width(
    addresses: dict[str, str], page: Page, live_server: LiveServer
) -> None:
    findings = []
    for path in list_pages(page, live_server.url):
        answer = page.goto(path)
        assert answer is not None
        assert answer.ok, path
        page.wait_for_load_state("networkidle")
        for violation in Axe().run(page).response["violations"]:
            if violation["impact"] in REFUSED_IMPACTS:
                findings.append((path, violation["id"], [node["html"][:100] for node in violation["nodes"]][:3]))
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            findings.append((path, "too wide", []))
    assert findings == []


def test_list_pages_contains_every_url_that_is_a_page(
    addresses: dict[str, str], browser: Browser, live_server: LiveServer, owner_client: Client
) -> None:
    context = browser.new_context(base_url=live_server.url)
    name = settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": owner_client.cookies[name].value, "url": live_server.url}])
    listed = {resolve(path.split("?")[0]).url_name for path in list_pages(context.new_page(), live_server.url)}
    context.close()
    unlisted = sorted(addresses.keys() - listed - NOT_LISTED)
    assert " ".join(name for name in unlisted if is_page(owner_client, addresses[name])) == ""


def is_page(client: Client, address: str) -> bool:
    """Return False for downloads, moved addresses and addresses that only take a form."""
    response = client.get(address)
    is_file = "Content-Disposition" in response.headers or not response.headers["Content-Type"].startswith("text/html")
    return response.status_code in (200, 404) and not is_file
