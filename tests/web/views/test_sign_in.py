"""Sign-in by a printed link, sign-out and the choice of the theme."""

import re
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from tests.page_html import read_html
from tests.test_settings import read_cookie_names
from toolbench.lab.accounts.sign_in import create_token

pytestmark = pytest.mark.django_db


def test_sign_in_link_signs_in(client: Client) -> None:
    printed = StringIO()
    call_command("link", base="http://testserver/", stdout=printed, stderr=StringIO())

    answer = client.get(printed.getvalue().strip().removeprefix("http://testserver"))

    assert answer.headers["Location"] == "/"
    assert "_auth_user_id" in client.session


def test_sign_in_leads_to_requested_page(client: Client) -> None:
    redirect = client.get("/trials/?outcome=fail&search=a%20b")
    client.get(redirect.headers["Location"])
    answer = client.get(f"/sign-in/{create_token()}/")
    assert answer.headers["Location"] == "/trials/?outcome=fail&search=a%20b"
    client.post("/sign-out/")
    assert client.get(f"/sign-in/{create_token()}/").headers["Location"] == "/"


@pytest.mark.parametrize("next_address", ["https://evil.test/", "//evil.test/", "javascript:alert(1)"])
def test_sign_in_never_leads_to_other_site(client: Client, next_address: str) -> None:
    client.get("/sign-in/", {"next": next_address})
    assert client.get(f"/sign-in/{create_token()}/").headers["Location"] == "/"


def test_sign_in_page_has_no_navigation(client: Client) -> None:
    text = read_html(client.get("/sign-in/"))
    assert 'aria-label="Main"' not in text
    assert "/matrix/" not in text


def test_sign_in_link_used_twice_says_how_to_get_another(client: Client) -> None:
    token = create_token()
    Client().get(f"/sign-in/{token}/")

    answer = client.get(f"/sign-in/{token}/")

    assert answer.status_code == 410
    assert "make link" in read_html(answer)


PREVIEW_HEADERS = [
    {"Purpose": "prefetch"},
    {"Purpose": "prefetch;prerender"},
    {"Purpose": "Preview"},
    {"X-Purpose": "preview"},
    {"Sec-Purpose": "prefetch"},
    {"Sec-Purpose": "prefetch;prerender", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    {"X-Moz": "prefetch"},
    {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    {"User-Agent": "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"},
    {"User-Agent": "Mozilla/5.0 (Macintosh) facebookexternalhit/1.1 Facebot Twitterbot/1.0"},
    {"User-Agent": "WhatsApp/2.23.20.0"},
    {"User-Agent": "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5"},
]
BROWSER_HEADERS = [
    {},
    {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"},
    {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", PREVIEW_HEADERS, ids=str)
def test_sign_in_link_is_not_used_by_previewing_program(client: Client, headers: dict[str, str]) -> None:
    link = f"/sign-in/{create_token()}/"

    preview = client.get(link, headers=headers)

    assert (preview.status_code, "_auth_user_id" in client.session) == (200, False)
    assert "no-store" in preview.headers["Cache-Control"]
    assert client.get(link).headers["Location"] == "/"


@pytest.mark.parametrize("headers", BROWSER_HEADERS, ids=str)
def test_sign_in_link_followed_by_person_signs_in_immediately(client: Client, headers: dict[str, str]) -> None:
    assert client.get(f"/sign-in/{create_token()}/", headers=headers).headers["Location"] == "/"
    assert "_auth_user_id" in client.session


def test_sign_in_link_is_not_used_by_head_request(client: Client) -> None:
    link = f"/sign-in/{create_token()}/"

    assert client.head(link).status_code == 200
    assert client.get(link).headers["Location"] == "/"


def test_sign_in_button_of_previewed_link_needs_csrf_token() -> None:
    browser, link = Client(enforce_csrf_checks=True), f"/sign-in/{create_token()}/"
    page = read_html(browser.get(link, headers={"Purpose": "prefetch"}))
    csrf = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[-1]

    assert browser.post(link).status_code == 403
    assert browser.post(link, {"csrfmiddlewaretoken": csrf}).headers["Location"] == "/"
    assert "_auth_user_id" in browser.session
    assert Client().post(link).status_code == 410


def test_sign_in_link_works_after_prefetch_by_page(visitor_page: Page, live_server: LiveServer) -> None:
    link = f"/sign-in/{create_token()}/"
    visitor_page.goto("/sign-in/")
    visitor_page.evaluate("async (link) => { await fetch(link, {headers: {Purpose: 'prefetch'}}); }", link)
    visitor_page.evaluate("async (link) => { await fetch(link); }", link)
    visitor_page.context.clear_cookies()

    visitor_page.goto(link)

    assert visitor_page.url == f"{live_server.url}/"


def test_sign_in_button_of_previewed_link_works_without_javascript(browser: Browser, live_server: LiveServer) -> None:
    context = browser.new_context(
        base_url=live_server.url, java_script_enabled=False, extra_http_headers={"Purpose": "prefetch"}
    )
    page = context.new_page()
    page.goto(f"/sign-in/{create_token()}/")

    page.get_by_role("button", name="Sign in to Toolbench").click()

    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    context.close()


def test_sessions_of_two_instances_on_one_host_are_separate(owner: User, settings: Settings) -> None:
    """The browser has one set of cookies; each instance has its own port, key and table of sessions."""
    browser = Client()
    for base in ("http://127.0.0.1:8000", "http://127.0.0.1:8001"):
        use_settings_of_instance(settings, base)
        assert browser.get(f"/sign-in/{create_token()}/").headers["Location"] == "/"
    for base in ("http://127.0.0.1:8000", "http://127.0.0.1:8001"):
        use_settings_of_instance(settings, base)
        assert browser.get("/runs/").status_code == 200
    browser.post("/sign-out/")
    assert browser.get("/runs/").status_code == 302

    use_settings_of_instance(settings, "http://127.0.0.1:8000")

    assert browser.get("/runs/").status_code == 200


def use_settings_of_instance(settings: Settings, base: str) -> None:
    """Use the cookie names and the secret key of the instance at this address."""
    for name, value in read_cookie_names(base).items():
        setattr(settings, name, value)
    settings.SECRET_KEY = f"the key of {base}"


def test_sign_out_without_session_leads_to_sign_in(client: Client) -> None:
    answer = client.post("/sign-out/")

    assert answer.headers["Location"].startswith("/sign-in/")


def test_sign_out_ends_session(owner_client: Client) -> None:
    answer = owner_client.post("/sign-out/")

    assert answer.headers["Location"] == "/sign-in/"
    assert "_auth_user_id" not in owner_client.session


def test_sign_in_page_names_command(visitor_page: Page) -> None:
    visitor_page.goto("/sign-in/")

    expect(visitor_page.get_by_text("make link", exact=True)).to_be_visible()


def test_theme_form_changes_theme_of_next_page(owner_client: Client) -> None:
    response = owner_client.post("/theme/", {"theme": "dark", "next": "/health/"}, follow=True)
    assert '<html lang="en" data-theme="dark">' in read_html(response)


@pytest.mark.parametrize("target", ["https://evil.test/", "//evil.test", "javascript:alert(1)"])
def test_theme_form_never_leads_to_other_site(owner_client: Client, target: str) -> None:
    assert owner_client.post("/theme/", {"theme": "dark", "next": target}).headers["location"] == "/"


def test_theme_form_replaces_unknown_theme_by_system(owner_client: Client) -> None:
    owner_client.post("/theme/", {"theme": "<b>"})
    assert owner_client.cookies["theme"].value == "system"
