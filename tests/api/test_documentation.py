"""The OpenAPI document and its page."""

import re

import pytest
from django.conf import settings
from django.test import Client

from tests.page_html import read_html

pytestmark = pytest.mark.django_db


def test_document_is_open_to_everybody_and_names_scopes(client: Client) -> None:
    answer = client.get("/api/v1/openapi.json")
    document = answer.json()
    assert document["openapi"].startswith("3.1")
    assert document["paths"]["/api/v1/runs"]["post"]["x-scope"] == "launch"
    assert document["paths"]["/api/v1/runs"]["post"]["responses"]["default"]
    assert client.get("/api/v1/openapi.json", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


def test_page_lists_every_operation_without_scripts(client: Client, owner_client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json()
    page = read_html(owner_client.get("/api/v1/docs"))
    for methods in document["paths"].values():
        for details in methods.values():
            assert f'id="{details["operationId"]}"' in page
    assert "Idempotency-Key".lower() in page.lower()
    assert client.get("/api/v1/docs").status_code == 302


def test_every_address_of_the_how_to_is_an_operation(client: Client) -> None:
    """With the method that curl sends: POST with a body, the one of -X, else GET."""
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
