"""Paths to redirect to, of which only those of this site are used, and links for other people."""

import pytest
from django.test import Client, RequestFactory
from pytest_django import Settings

from toolbench.web.requests import build_link, choose_local_path


@pytest.mark.parametrize("path", ["/runs/7/?a=b#c", "/"])
def test_choose_local_path_keeps_path_of_this_site(path: str) -> None:
    assert choose_local_path(path, "/other/") == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "runs/",
        "//evil.example/",
        "/\\evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "///evil.example",
    ],
)
def test_choose_local_path_replaces_other_addresses(path: str) -> None:
    assert choose_local_path(path, "/other/") == "/other/"


@pytest.mark.parametrize(
    ("base", "link"),
    [
        ("http://127.0.0.1:8000", "http://10.0.0.7:8000/shared/x/"),
        ("http://localhost:8000", "http://10.0.0.7:8000/shared/x/"),
        ("https://bench.example.org", "https://bench.example.org/shared/x/"),
    ],
)
def test_build_link_begins_with_an_address_that_others_reach(settings: Settings, base: str, link: str) -> None:
    settings.BASE_URL, settings.ALLOWED_HOSTS = base, ["*"]
    request = RequestFactory().get("/", headers={"host": "10.0.0.7:8000"})
    assert build_link(request, "/shared/x/") == link


@pytest.mark.django_db
def test_entered_values_are_kept_for_whole_page_of_form_only(owner_client: Client) -> None:
    owner_client.post("/runs/act/", {"action": "label", "label": "night", "back": "/runs/?page=1"})
    owner_client.get("/matrix/")
    part = owner_client.get("/runs/", headers={"HX-Request": "true"})
    page = owner_client.get("/runs/")
    assert (part.context["entered"], page.context["entered"]["label"]) == ({}, "night")
    assert "csrfmiddlewaretoken" not in page.context["entered"]
    assert owner_client.get("/runs/").context["entered"] == {}
