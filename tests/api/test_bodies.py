"""Malformed request bodies: the API refuses them and says what to change."""

import pytest
from django.test import Client

from tests.api.requests import ApiClient
from tests.factories import make_run

pytestmark = pytest.mark.django_db
BODIES = {
    "not json": (b"{", 400, "Send the body as JSON"),
    "not utf-8": (b'{"label": "\xff"}', 400, "UTF-8: byte 11"),
    "nan": (b'{"label": NaN}', 400, "NaN"),
    "too deep": (b"[" * 50_000, 400, "nested"),
    "empty": (b"", 422, "Add body"),
    "a list": (b"[]", 422, "as an object"),
    "nul": (b'{"label": "a\\u0000b"}', 422, "NUL"),
    "surrogate": (b'{"label": "\\ud800"}', 422, "surrogates from label"),
    "number": (b'{"label": 1}', 422, "Give label as a text."),
    "too long": (b'{"label": "' + b"x" * 81 + b'"}', 422, "Shorten label to 80 characters."),
    "unknown name": (b'{"label": "", "name": ""}', 422, "Remove name"),
    "missing name": (b"{}", 422, "Add label: it is required."),
    "too large": (b'{"label": "' + b"x" * 2_700_000 + b'"}', 413, "at most 2,621,440 bytes"),
}


@pytest.mark.parametrize("body", BODIES)
def test_api_refuses_malformed_body_with_reason(api: ApiClient, client: Client, body: str) -> None:
    content, status, words = BODIES[body]
    run = make_run(label="kept")
    headers = {"Authorization": f"Bearer {api.secret}"}
    answer = client.patch(f"/api/v1/runs/{run.pk}", content, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
    assert words in answer.json()["detail"]
    run.refresh_from_db()
    assert run.label == "kept"


def test_api_refuses_body_of_other_content_type(api: ApiClient, client: Client) -> None:
    run = make_run()
    headers = {"Authorization": f"Bearer {api.secret}"}
    answer = client.patch(f"/api/v1/runs/{run.pk}", b"label=x", content_type="text/plain", headers=headers)
    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.json()["detail"]


def test_api_unknown_path_and_method_return_problem_document(api: ApiClient) -> None:
    assert "/api/v1/docs" in api.problem("GET", "/nothing", status=404)["detail"]
    assert "Use " in api.problem("PUT", "/runs", status=405)["detail"]
    assert api.send("PUT", "/runs").headers["Allow"]
    assert api.send("HEAD", "/runs").status_code == 200
