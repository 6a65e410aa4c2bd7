"""Error pages: what happened, what was kept and what to do."""

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.utils import timezone

from tests.page_html import read_html
from toolbench.installation import build_log_path
from toolbench.lab.models import ServiceAddress
from toolbench.lab.serving.aliases import GATEWAY_NAME
from toolbench.web.views.errors import server_error


def test_server_error_of_lost_database_returns_503() -> None:
    try:
        raise OperationalError("server closed the connection")
    except OperationalError:
        response = server_error(RequestFactory().get("/"))
    assert response.status_code == 503
    assert "The database does not answer" in read_html(response)


def test_server_error_of_internal_error_names_log() -> None:
    try:
        raise RuntimeError
    except RuntimeError:
        response = server_error(RequestFactory().get("/"))
    assert response.status_code == 500
    assert build_log_path("web.log") in read_html(response)


@pytest.mark.django_db
def test_csrf_error_page_says_form_is_too_old(owner_client: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = owner_client.cookies
    response = strict.post("/providers/new/", {"name": "x"})
    assert response.status_code == 403
    assert "opened too long ago" in read_html(response)


def test_bad_request_page_of_unknown_host_names_setting() -> None:
    response = Client(headers={"host": "elsewhere.test"}).get("/sign-in/")
    assert response.status_code == 400
    assert "ALLOWED_HOSTS=" in read_html(response)


@pytest.mark.django_db
def test_error_413_page_names_limit_and_kept_input(owner_client: Client) -> None:
    kept = "What you typed is still in the form"
    pasted = owner_client.post("/cases/new/", {"tools": "x" * 2_621_440})
    assert pasted.status_code == 413
    assert all(sentence in read_html(pasted) for sentence in ("up to 2,621,440 bytes", "Nothing was saved", kept))
    chosen = owner_client.post("/runs/new/", {f"field-{number}": "" for number in range(1001)})
    assert chosen.status_code == 413
    assert all(sentence in read_html(chosen) for sentence in ("up to 1,000 values", "Choose fewer", kept))


@pytest.mark.django_db
def test_case_import_of_too_large_file_names_limit(owner_client: Client) -> None:
    file = SimpleUploadedFile("cases.jsonl", b" " * 20_000_001)
    response = owner_client.post("/cases/bring/", {"file": file})
    assert response.status_code == 422
    assert "Split it: a file may have 20,000,000. Nothing was saved." in read_html(response)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/nothing/", "/providers/9/models/"])
def test_error_404_page_offers_links(owner_client: Client, path: str) -> None:
    response = owner_client.get(path)
    assert response.status_code == 404
    text = read_html(response)
    assert "All runs" in text
    assert "The link may be mistyped" in text
    assert "given query" not in text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/runs/987654/", "There is no run 987654; it may have been deleted."),
        ("/compare/export.csv", "Choose two or more sides of measured trials before you export them."),
        ("/shared/nothing/", "This link has expired or was revoked. Ask for a new one."),
        ("/cases/new/?trial=<b>", "There is no trial &lt;b&gt;."),
    ],
)
def test_error_404_page_gives_reason(owner_client: Client, path: str, reason: str) -> None:
    response = owner_client.get(path)
    assert response.status_code == 404
    assert reason in read_html(response)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "base_url"),
    [
        ("/v1/chat/completions", "http://here:8001/v1"),
        ("/chat/completions", "http://here:8001/v1"),
        ("/v1/messages", "http://here:8001"),
    ],
)
def test_error_404_of_model_api_path_names_gateway(client: Client, path: str, base_url: str) -> None:
    ServiceAddress.objects.create(name=GATEWAY_NAME, host="here", url="http://here:8001", ready_at=timezone.now())

    answer = client.post(path, {"model": "x"}, content_type="application/json")

    assert answer.status_code == 404
    assert answer.json()["error"]["message"].endswith(f"Set base_url to the address of the gateway: {base_url}")


@pytest.mark.django_db
def test_error_404_of_model_api_path_names_gateway_of_all_addresses(client: Client, settings: LazySettings) -> None:
    settings.BASE_URL = "http://bench.example.org:8000"
    ServiceAddress.objects.create(name=GATEWAY_NAME, host="here", url="http://0.0.0.0:8001", ready_at=timezone.now())

    message = client.post("/v1/messages", {"model": "x"}, content_type="application/json").json()["error"]["message"]

    assert message.endswith("http://bench.example.org:8001")


@pytest.mark.django_db
def test_error_404_of_model_api_path_without_gateway_says_so(client: Client) -> None:
    assert client.get("/v1/models").json()["error"]["message"].endswith("No gateway runs.")
