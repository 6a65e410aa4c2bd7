"""Every response has the id of its request, and log lines do not hold addresses."""

import logging
import re

import pytest
from django.test import Client

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


def test_line_of_a_request_names_the_page_and_not_its_address(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="toolbench.web.middleware"):
        Client().get("/sign-in/secret-token/")
        Client().get("/no/such/page/")
    messages = [record.getMessage() for record in caplog.records if record.name == "toolbench.web.middleware"]
    assert re.fullmatch(r"GET sign-in-link: \d+ in \d+ ms", messages[0])
    assert messages[1].startswith("GET no page: 404")
    assert "secret-token" not in "".join(messages)
