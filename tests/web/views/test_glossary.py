"""Terms of the glossary on the page Help, in the palette and in links of templates."""

import re

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from tests.page_html import read_html
from toolbench.installation import ASSETS
from toolbench.lab.results.glossary import find_terms, read_glossary

ANCHORS = [term.anchor for terms in read_glossary().values() for term in terms]
HELP_LINK = re.compile(r'{% url "help" %}#([\w-]+)')


def test_glossary_terms_have_names_meanings_and_own_anchors() -> None:
    terms = [term for section in read_glossary().values() for term in section]

    assert len(terms) > 100
    assert [term for term in terms if not (term.name and term.meaning)] == []
    assert sorted(set(ANCHORS)) == sorted(ANCHORS)
    assert [term.name for term in terms if "](" in term.meaning] == []


def test_links_to_help_lead_to_terms() -> None:
    templates = (ASSETS / "templates").rglob("*.html")
    linked = {anchor for path in templates for anchor in HELP_LINK.findall(path.read_text())}

    assert {"strategy", "cell", "aa-noise"} <= linked
    assert linked - set(ANCHORS) == set()


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("strategy production", "strategy"),
        ("parity", "published wording, parity"),
        ("A/A", "A/A noise, A/A repeat"),
        ("infra", "infrastructure error"),
        ("cell", "cell"),
        ("control", "control"),
    ],
)
def test_find_terms_finds_words_of_pages(text: str, first: str) -> None:
    assert find_terms(text)[0].name == first


@pytest.mark.parametrize("text", ["", " ", "no such words", "cancellation token"])
def test_find_terms_without_match_is_empty(text: str) -> None:
    assert find_terms(text) == ()


@pytest.mark.django_db
def test_help_shows_terms_with_anchors(owner_client: Client) -> None:
    page = read_html(owner_client.get("/help/"))

    assert 'id="strategy"' in page
    assert "production</code>" in page
    assert "stored as" in page


@pytest.mark.django_db
def test_palette_finds_terms_and_opens_them(owner_client: Client) -> None:
    page = read_html(owner_client.get("/search/", {"q": "strategy production"}, headers={"HX-Request": "true"}))

    assert 'href="/help/#strategy"' in page


@pytest.mark.django_db
def test_escape_closes_account_menu(browser_page: Page) -> None:
    browser_page.goto("/help/")
    summary = browser_page.locator(".account > summary")
    summary.click()
    expect(browser_page.get_by_role("link", name="Tokens")).to_be_visible()
    browser_page.keyboard.press("Escape")

    expect(browser_page.get_by_role("link", name="Tokens")).to_be_hidden()
    expect(summary).to_be_focused()
    summary.click()
    browser_page.get_by_role("button", name="Dark").click()
    expect(browser_page.locator("html")).to_have_attribute("data-theme", "dark")
