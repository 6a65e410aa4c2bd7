"""Expected trouble is said in words: what happened, what was kept, what to do."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.utils import timezone

from tests.page_html import read_html
from toolbench.lab.models import ServiceAddress
from toolbench.lab.serving.aliases import GATEWAY_NAME
from toolbench.web.views.errors import server_error


def test_a_database_that_is_away_is_no_mistake_of_ours() -> None:
    try:
        raise OperationalError("server closed the connection")
    except OperationalError:
        response = server_error(RequestFactory().get("/"))
    assert response.status_code == 503
    assert "The database does not answer" in read_html(response)


def test_a_mistake_of_ours_names_the_log_and_what_goes_on() -> None:
    try:
        raise RuntimeError
    except RuntimeError:
        response = server_error(RequestFactory().get("/"))
    assert response.status_code == 500
    assert "var/log/web.log" in read_html(response)


@pytest.mark.django_db
def test_a_form_with_an_old_token_says_that_nothing_was_sent(owner_client: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = owner_client.cookies
    response = strict.post("/providers/new/", {"name": "x"})
    assert response.status_code == 403
    assert "opened too long ago" in read_html(response)


def test_an_unknown_host_is_told_how_to_be_allowed() -> None:
    response = Client(headers={"host": "elsewhere.test"}).get("/sign-in/")
    assert response.status_code == 400
    assert "ALLOWED_HOSTS=" in read_html(response)


@pytest.mark.django_db
def test_oversized_input_error_names_limit_and_way_back(owner_client: Client) -> None:
    kept = "What you typed is still in the form"
    pasted = owner_client.post("/cases/new/", {"tools": "x" * 2_621_440})
    assert pasted.status_code == 413
    assert all(said in read_html(pasted) for said in ("up to 2,621,440 bytes", "Nothing was saved", kept))
    chosen = owner_client.post("/runs/new/", {f"field-{number}": "" for number in range(1001)})
    assert chosen.status_code == 413
    assert all(said in read_html(chosen) for said in ("up to 1,000 values", "Choose fewer", kept))


@pytest.mark.django_db
def test_a_file_of_cases_that_is_too_large_is_told_its_limit(owner_client: Client) -> None:
    file = SimpleUploadedFile("cases.jsonl", b" " * 20_000_001)
    response = owner_client.post("/cases/bring/", {"file": file})
    assert response.status_code == 422
    assert "it may have 20,000,000. Nothing was saved." in read_html(response)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/nothing/", "/scenarios/nothing/", "/providers/9/models/"])
def test_an_unknown_address_offers_a_way_on(owner_client: Client, path: str) -> None:
    response = owner_client.get(path)
    assert response.status_code == 404
    assert "All runs" in read_html(response)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "base_url"),
    [
        ("/v1/chat/completions", "http://here:8001/v1"),
        ("/chat/completions", "http://here:8001/v1"),
        ("/v1/messages", "http://here:8001"),
    ],
)
def test_unknown_address_of_a_model_api_names_the_gateway(client: Client, path: str, base_url: str) -> None:
    ServiceAddress.objects.create(name=GATEWAY_NAME, host="here", url="http://here:8001", ready_at=timezone.now())

    answer = client.post(path, {"model": "x"}, content_type="application/json")

    assert answer.status_code == 404
    assert answer.json()["error"]["message"].endswith(f"Set base_url to the address of the gateway: {base_url}")


@pytest.mark.django_db
def test_unknown_address_of_a_model_api_says_that_no_gateway_runs(client: Client) -> None:
    assert client.get("/v1/models").json()["error"]["message"].endswith("No gateway runs.")
