"""The OpenAPI document and its page."""

import pytest
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
