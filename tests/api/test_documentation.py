"""The OpenAPI document and its page."""

import re

import pytest
from django.conf import settings
from django.test import Client

from tests.page_html import read_html

pytestmark = pytest.mark.django_db


def test_openapi_document_is_public_and_names_scopes(client: Client) -> None:
    answer = client.get("/api/v1/openapi.json")
    document = answer.json()
    assert document["openapi"].startswith("3.1")
    assert document["paths"]["/api/v1/runs"]["post"]["x-scope"] == "launch"
    assert document["paths"]["/api/v1/runs"]["post"]["responses"]["default"]
    assert client.get("/api/v1/openapi.json", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


def test_api_docs_page_lists_every_operation(client: Client, owner_client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json()
    page = read_html(owner_client.get("/api/v1/docs"))
    for methods in document["paths"].values():
        for details in methods.values():
            assert f'id="{details["operationId"]}"' in page
    assert "Idempotency-Key".lower() in page.lower()
    assert client.get("/api/v1/docs").status_code == 302


def test_api_docs_page_shows_values_defaults_and_meanings(owner_client: Client) -> None:
    page = read_html(owner_client.get("/api/v1/docs"))
    assert "&quot;1&quot; or null" in page  # the parameter `demo`
    assert "&quot;failed&quot;" in page  # the default of `sort`
    assert "order of the list" in page
    assert "list of ModelDocument" in page
    assert 'id="ModelDocument"' in page


def test_api_docs_page_shows_text_between_backticks_as_code(owner_client: Client) -> None:
    page = read_html(owner_client.get("/api/v1/docs"))
    assert "`" not in page
    assert "order of the list: <code>failed</code> first, <code>order</code> (as planned" in page


def test_openapi_document_names_header_of_idempotency_key(client: Client) -> None:
    """WSGI servers drop headers with underscores, so another name would let a repeated launch be paid twice."""
    document = client.get("/api/v1/openapi.json").json()
    parameters = document["paths"]["/api/v1/runs"]["post"]["parameters"]
    assert [row["name"] for row in parameters if row["in"] == "header"] == ["Idempotency-Key"]


def test_api_how_to_commands_match_operations(client: Client) -> None:
    """Compare path and method; curl sends the method of -X, else POST with a body and GET without."""
    document = client.get("/api/v1/openapi.json").json()
    patterns = {
        (method.upper(), re.compile(re.sub(r"{[^}]+}", "[^/]+", path) + "$")): path
        for path, methods in document["paths"].items()
        for method in methods
    }
    text = (settings.BASE_DIR / "docs" / "api.md").read_text().replace("\\\n", " ")
    commands = [line for line in text.splitlines() if line.startswith("tb ")]
    assert len(commands) > 20
    for command in commands:
        path = re.search(r'\$BASE(/[^"?]+)', command)
        named = re.search(r"-X (\w+)", command)
        method = named[1] if named else "POST" if " -d " in command else "GET"
        assert path is not None
        assert [key for key in patterns if key[0] == method and key[1].match(f"/api/v1{path[1]}")], command
