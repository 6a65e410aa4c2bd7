"""Command palette: results as a page, as a dialog and by keys."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.factories import make_cell, make_config, make_provider, make_run, make_trial
from tests.page_html import read_html

pytestmark = pytest.mark.django_db


def test_search_finds_models_runs_trials_and_scenarios(owner_client: Client) -> None:
    make_provider(base_url="http://127.0.0.1:9")
    run = make_run(title="Nightly")
    config = make_config(run)
    trial = make_trial(make_cell(config), "fail")
    page = read_html(owner_client.get("/search/", {"q": config.model_name[:4]}))
    assert f"/models/{config.model_id}/" in page
    assert "Failed trials of" in page
    (failed,) = re.findall(r'href="(/trials/\?[^"]*model=[^"]+)"', page)
    assert 'data-total="1"' in read_html(owner_client.get(failed.replace("&amp;", "&")))
    assert f'href="/runs/{run.pk}/"' in read_html(owner_client.get("/search/?q=nightl"))
    make_run(title=f"Compare with {trial.pk}")  # a name with the number comes after the trial that has it
    by_number = read_html(owner_client.get("/search/", {"q": str(trial.pk)}, headers={"HX-Request": "true"}))
    assert f'href="/trials/{trial.pk}/"' in by_number.split("By number")[1].split("</ul>")[0]
    assert by_number.index("By number") < by_number.index("Compare with")
    assert 'href="/scenarios/happy_path/"' in read_html(owner_client.get("/search/?q=happy path"))


@pytest.mark.parametrize("text", ["", "%", "'", "\0", "x" * 5000, "#", "#999999999999999999999999", "<b>"])
def test_search_answers_garbage(owner_client: Client, text: str) -> None:
    assert owner_client.get("/search/", {"q": text}).status_code == 200


@pytest.mark.parametrize(("text", "url"), [("deci", "/decide/"), ("Trials", "/trials/"), ("happy", "/trials/?")])
def test_search_lists_pages_with_matching_name_first(owner_client: Client, text: str, url: str) -> None:
    page = read_html(owner_client.get("/search/", {"q": text}, headers={"HX-Request": "true"}))
    assert page.split('href="')[1].startswith(url)


def test_search_lists_only_commands_of_role(owner_client: Client, client: Client) -> None:
    assert "/providers/new/" in read_html(owner_client.get("/search/"))
    client.force_login(User.objects.create(username="viewer"))
    page = read_html(client.get("/search/", headers={"HX-Request": "true"}))
    assert "/providers/new/" not in page
    assert 'href="/matrix/"' in page
    assert "<html" not in page


def test_palette_opens_by_key_and_follows_chosen_page(browser_page: Page, live_server: LiveServer) -> None:
    browser_page.goto("/runs/")
    browser_page.keyboard.press("Control+k")
    palette = browser_page.get_by_role("dialog", name="Search or jump to")
    expect(palette.get_by_role("link", name="New run")).to_be_visible()
    palette.get_by_role("searchbox").fill("presets")
    expect(palette.get_by_role("link")).to_have_count(3)  # the page, search text of trials, a term
    browser_page.keyboard.press("ArrowDown")
    browser_page.keyboard.press("ArrowUp")
    browser_page.keyboard.press("Enter")
    expect(browser_page).to_have_url(f"{live_server.url}/presets/")
    browser_page.keyboard.press("Control+k")
    browser_page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
