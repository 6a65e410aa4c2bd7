"""Every response has the id of its request, and log lines do not hold addresses."""

import logging
import re

import pytest
from django.test import Client

from toolbench.web.views import sign_in

pytestmark = pytest.mark.django_db


def test_response_has_a_new_id_or_that_of_the_proxy() -> None:
    first, second = (Client().get("/health/live").headers["X-Request-ID"] for _ in range(2))
    assert re.fullmatch("[0-9a-f]{16}", first)
    assert first != second
    sent = Client().get("/health/live", headers={"X-Request-ID": "proxy-7f3a.1"})
    assert sent.headers["X-Request-ID"] == "proxy-7f3a.1"


@pytest.mark.parametrize("bad", ["short", "a b c d e f g", "x" * 65, "line\nbreak1", "ümlaut-ümlaut"])
def test_id_of_another_form_is_replaced(bad: str) -> None:
    answer = Client().get("/health/live", headers={"X-Request-ID": bad})
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["X-Request-ID"])


def test_log_lines_name_the_page_and_not_its_address(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(token: str) -> None:
        raise RuntimeError("The database is gone.")

    referring = {"Referer": "https://elsewhere.example/sign-in/secret-token-2/"}
    caplog.set_level(logging.INFO, logger="toolbench")
    Client().get("/sign-in/secret-token/")
    Client().get("/no/such/page/of/secret-token/")
    Client().get("/shared/secret-token-ü/")
    Client().put("/sign-in/secret-token/")
    Client(enforce_csrf_checks=True).post("/sign-in/secret-token/")
    Client(enforce_csrf_checks=True).post("/sign-in/secret-token/", secure=True, headers=referring)
    monkeypatch.setattr(sign_in, "redeem_token", fail)
    Client(raise_request_exception=False).post("/sign-in/secret-token/")

    lines = [(record.name, record.getMessage()) for record in caplog.records]
    own = [message for name, message in lines if name == "toolbench.web.middleware"]
    assert re.fullmatch(r"GET sign-in-link: \d+ in \d+ ms", own[0])
    assert own[1].startswith("GET no page: 404")
    django = [message for name, message in lines if name.startswith("django.")]
    assert django == [
        "Gone: sign-in-link",
        "Not Found: no page",
        "Not Found: shared",
        "Method Not Allowed (PUT): sign-in-link",
        "Forbidden (CSRF cookie not set.): sign-in-link",
        "Forbidden (Referer checking failed - the referring page does not match any trusted origins.): sign-in-link",
        "Internal Server Error: sign-in-link",
    ]
    assert "secret-token" not in "".join(f"{record.getMessage()}{record.exc_text}" for record in caplog.records)
