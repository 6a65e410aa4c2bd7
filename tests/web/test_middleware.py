"""Request ids of responses, and log lines without addresses."""

import logging
import re

import pytest
from django.test import Client

from toolbench.web.views import sign_in

pytestmark = pytest.mark.django_db


def test_middleware_sets_new_request_id_or_keeps_that_of_proxy() -> None:
    first, second = (Client().get("/health/live").headers["X-Request-ID"] for _ in range(2))
    assert re.fullmatch("[0-9a-f]{16}", first)
    assert first != second
    sent = Client().get("/health/live", headers={"X-Request-ID": "proxy-7f3a.1"})
    assert sent.headers["X-Request-ID"] == "proxy-7f3a.1"


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
