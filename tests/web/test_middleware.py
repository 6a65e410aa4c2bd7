"""Request ids of responses, log lines without addresses, and 404 for rows deleted meanwhile."""

import logging
import re

import pytest
from django.db.models import Model as Row
from django.test import Client

from tests.deleted_rows import delete_before_lock
from tests.factories import make_model, make_provider
from tests.page_html import read_html
from tests.web.views.library.test_profiles import read_form_values
from toolbench.lab.models import Preset, SamplingProfile
from toolbench.web.views import sign_in

pytestmark = pytest.mark.django_db


def test_middleware_sets_new_request_id_or_keeps_that_of_proxy() -> None:
    first, second = (Client().get("/health/live").headers["X-Request-ID"] for _ in range(2))
    assert re.fullmatch("[0-9a-f]{16}", first)
    assert first != second
    sent = Client().get("/health/live", headers={"X-Request-ID": "proxy-7f3a.1"})
    assert sent.headers["X-Request-ID"] == "proxy-7f3a.1"


def test_middleware_lets_htmx_open_page_to_sign_in() -> None:
    htmx = {"HX-Request": "true"}
    answer = Client().get("/runs/1/?page=2", headers=htmx)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["HX-Redirect"] == "/sign-in/?next=/runs/1/%3Fpage%3D2"
    for headers in ({}, htmx | {"HX-History-Restore-Request": "true"}):
        assert Client().get("/runs/1/?page=2", headers=headers).headers["Location"] == answer.headers["HX-Redirect"]


@pytest.mark.parametrize("bad", ["short", "a b c d e f g", "x" * 65, "line\nbreak1", "ümlaut-ümlaut"])
def test_middleware_replaces_malformed_request_id(bad: str) -> None:
    answer = Client().get("/health/live", headers={"X-Request-ID": bad})
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["X-Request-ID"])


def test_middleware_log_lines_name_page_without_address(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(token: str) -> None:
        raise RuntimeError("The database is gone.")

    referrer = {"Referer": "https://elsewhere.example/sign-in/secret-token-2/"}
    caplog.set_level(logging.INFO, logger="toolbench")
    Client().get("/sign-in/secret-token/")
    Client().get("/no/such/page/of/secret-token/")
    Client().get("/shared/secret-token-ü/")
    Client().put("/sign-in/secret-token/")
    Client(enforce_csrf_checks=True).post("/sign-in/secret-token/")
    Client(enforce_csrf_checks=True).post("/sign-in/secret-token/", secure=True, headers=referrer)
    monkeypatch.setattr(sign_in, "redeem_token", fail)
    Client(raise_request_exception=False).post("/sign-in/secret-token/")

    lines = [(record.name, record.getMessage()) for record in caplog.records]
    middleware_lines = [message for name, message in lines if name == "toolbench.web.middleware"]
    assert re.fullmatch(r"GET sign-in-link: \d+ in \d+ ms", middleware_lines[0])
    assert middleware_lines[1].startswith("GET no page: 404")
    django_lines = [message for name, message in lines if name.startswith("django.")]
    assert django_lines == [
        "Gone: sign-in-link",
        "Not Found: no page",
        "Not Found: shared",
        "Method Not Allowed (PUT): sign-in-link",
        "Forbidden (CSRF cookie not set.): sign-in-link",
        "Forbidden (Referer checking failed - the referring page does not match any trusted origins.): sign-in-link",
        "Internal Server Error: sign-in-link",
    ]
    assert "secret-token" not in "".join(f"{record.getMessage()}{record.exc_text}" for record in caplog.records)


def make_page(kind: str) -> tuple[Row, str]:
    """Make a row; return it with the path of the page that changes it."""
    if kind == "provider":
        provider = make_provider("Mine", base_url="https://x.test")
        return provider, f"/providers/{provider.pk}/"
    if kind == "model":
        model = make_model()
        return model, f"/models/{model.pk}/settings/"
    if kind == "profile":
        return SamplingProfile.objects.create(name="mine", options={"temperature": 0.5}), "/profiles/mine/"
    return Preset.objects.create(name="mine", patch={"max_turns": 6}), "/presets/mine/"


@pytest.mark.parametrize("kind", ["provider", "model", "profile", "preset"])
def test_middleware_answers_404_for_row_deleted_meanwhile(owner_client: Client, kind: str) -> None:
    row, path = make_page(kind)
    form = read_form_values(owner_client, path)
    with delete_before_lock(row):
        answer = owner_client.post(path, form)
    assert answer.status_code == 404
    assert "There is nothing at this address" in read_html(answer)
