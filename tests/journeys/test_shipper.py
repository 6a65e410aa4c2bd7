"""Shipper: gives a program a token, shares a run, promotes settings to an alias and rolls them back."""

import re
import urllib.request

from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.factories import make_config, make_measured_config, make_model, make_provider, make_run
from tests.journeys.clicks import ClickCounter
from toolbench.lab.models import ModelAlias, Provider, RunConfig
from toolbench.lab.serving.aliases import AliasChoice, save_alias


def make_config_to_ship() -> RunConfig:
    """Return the configuration of a finished run of 72 passed trials."""
    model = make_model("measured", provider=make_provider("Simulated for shipping", kind=Provider.Kind.SIMULATED))
    return make_measured_config(model)


def test_shipper_token_made_in_browser_reads_api(
    browser_page: Page, catalogue: None, clicks: ClickCounter, live_server: LiveServer
) -> None:
    page = browser_page
    page.goto("/settings/tokens/")
    page.get_by_label("Name", exact=True).fill("ci")
    page.locator('input[name="scopes"][value="read"]').check()
    page.get_by_role("button", name="Create token").click()
    secret = re.search(r"tb_[\w-]{43}", page.locator("main").inner_text())
    assert secret is not None
    request = urllib.request.Request(f"{live_server.url}/api/v1/runs", headers={"Authorization": f"Bearer {secret[0]}"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    assert clicks.count == 2


def test_shipper_shared_run_opens_without_sign_in(
    browser_page: Page, catalogue: None, browser: Browser, clicks: ClickCounter, live_server: LiveServer
) -> None:
    run = make_config_to_ship().run
    browser_page.goto(f"/runs/{run.pk}/")
    browser_page.get_by_role("button", name="Make share link").click()
    link = re.search(r"http://\S+/shared/\S+", browser_page.locator("main").inner_text())
    assert link is not None
    context = browser.new_context(base_url=live_server.url)
    page = context.new_page()
    page.goto(link[0])
    expect(page.locator("main")).to_contain_text("72")
    expect(page.get_by_role("button")).to_have_count(0)
    context.close()
    assert clicks.count == 1


def test_shipper_promotes_settings_and_rolls_back(browser_page: Page, catalogue: None, clicks: ClickCounter) -> None:
    make_config_to_ship()
    earlier = make_config(make_run(), make_model("vendor/old"), policy_hash="old")
    alias = save_alias(AliasChoice("weather", 0, config=earlier.pk), owner=None)
    page = browser_page
    page.goto("/decide/?scope=demo&want=fastest")
    page.get_by_role("link", name="Promote to an alias").click()
    page.get_by_label("Alias", exact=True).fill("weather")
    page.get_by_role("button", name="Promote", exact=True).click()
    alias.refresh_from_db()
    assert alias.config is not None
    assert alias.config.model_name == "measured"

    page.goto(f"/gateway/{alias.pk}/")
    page.get_by_role("button", name="Roll back to this").click()
    expect(page.locator("main")).to_contain_text("Rolled back: weather is served by vendor/old")
    assert ModelAlias.objects.get().config == earlier
    assert clicks.count == 3
