"""Signing in with a printed link."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from playwright.sync_api import Page, expect

from toolbench.lab.signing_in import make_token

pytestmark = pytest.mark.django_db


def test_a_printed_link_signs_in(client: Client) -> None:
    printed = StringIO()
    call_command("link", base="", stdout=printed, stderr=StringIO())

    answer = client.get(printed.getvalue().strip())

    assert answer.headers["Location"] == "/"
    assert "_auth_user_id" in client.session


def test_the_page_that_was_wanted_is_there_after_signing_in(client: Client) -> None:
    sent_away = client.get("/trials/?outcome=fail&search=a%20b")
    client.get(sent_away.headers["Location"])
    answer = client.get(f"/sign-in/{make_token()}/")
    assert answer.headers["Location"] == "/trials/?outcome=fail&search=a%20b"
    client.post("/sign-out/")
    assert client.get(f"/sign-in/{make_token()}/").headers["Location"] == "/"


@pytest.mark.parametrize("wanted", ["https://evil.test/", "//evil.test/", "javascript:alert(1)"])
def test_only_a_page_of_this_site_is_kept(client: Client, wanted: str) -> None:
    client.get("/sign-in/", {"next": wanted})
    assert client.get(f"/sign-in/{make_token()}/").headers["Location"] == "/"


def test_a_stranger_sees_no_navigation(client: Client) -> None:
    text = client.get("/sign-in/").content.decode()
    assert 'aria-label="Main"' not in text
    assert "/matrix/" not in text


def test_a_spent_link_says_how_to_get_another(client: Client) -> None:
    token = make_token()
    Client().get(f"/sign-in/{token}/")

    answer = client.get(f"/sign-in/{token}/")

    assert answer.status_code == 410
    assert "make link" in answer.content.decode()


def test_a_browser_that_fetches_ahead_does_not_spend_the_link(client: Client) -> None:
    token = make_token()
    client.get(f"/sign-in/{token}/", headers={"Sec-Purpose": "prefetch"})

    client.get(f"/sign-in/{token}/")

    assert "_auth_user_id" in client.session


def test_every_page_sends_a_stranger_to_the_sign_in_page(client: Client) -> None:
    answer = client.post("/sign-out/")

    assert answer.headers["Location"].startswith("/sign-in/")


def test_signing_out_ends_the_session(owner_client: Client) -> None:
    answer = owner_client.post("/sign-out/")

    assert answer.headers["Location"] == "/sign-in/"
    assert "_auth_user_id" not in owner_client.session


def test_the_sign_in_page_names_the_command(visitor_page: Page) -> None:
    visitor_page.goto("/sign-in/")

    expect(visitor_page.get_by_text("make link", exact=True)).to_be_visible()
