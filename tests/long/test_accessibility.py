"""Every page in both themes and at two widths: what axe-core calls serious or critical, and pages that are too wide."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from benchmarks.shots import THEMES, WIDTHS, list_pages
from tests.lab.conftest import RunInThread, elsewhere
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.providers.scripted_server import ScriptedServer, text_reply

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
REFUSED_IMPACTS = ("serious", "critical")

__all__ = ["elsewhere"]  # a fixture


@pytest.fixture
def results(elsewhere: RunInThread) -> None:
    """A run of a model that succeeds and one that calls no tool."""
    load_builtin_data()
    with ScriptedServer(answer_correctly) as good, ScriptedServer(lambda seen: text_reply("No.")) as poor:
        models = [make_scripted_model(good, "good"), make_scripted_model(poor, "poor")]
        launch_run(*models, scenarios=("happy_path", "long_arguments_guard", "chat_only"), trials=2)
        for model in models:
            assert elsewhere(run_worker_session, model).result() == 6


@pytest.fixture(params=[(width, theme) for width in WIDTHS for theme in THEMES], ids=str)
def page(
    request: pytest.FixtureRequest, browser: Browser, live_server: LiveServer, owner_client: Client
) -> Iterator[Page]:
    """The site at one width and theme, signed in, open to scripts of the check."""
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


def test_no_page_has_a_serious_finding_or_is_too_wide(results: None, page: Page, live_server: LiveServer) -> None:
    findings = []
    paths = list_pages(page, live_server.url)
    for path in paths:
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
    assert {"/matrix/", "/trials/"} < {path.split("?")[0] for path in paths}
    assert any(path.startswith("/trials/") and path[8:9].isdigit() for path in paths)
