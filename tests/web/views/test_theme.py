"""The theme is kept in a cookie, so that the first paint is right."""

import pytest
from django.test import Client

from tests.page_html import read_html

pytestmark = pytest.mark.django_db


def test_the_choice_is_written_into_the_next_page(owner_client: Client) -> None:
    response = owner_client.post("/theme/", {"theme": "dark", "next": "/health/"}, follow=True)
    assert '<html lang="en" data-theme="dark">' in read_html(response)


@pytest.mark.parametrize("target", ["https://evil.test/", "//evil.test", "javascript:alert(1)"])
def test_it_leads_nowhere_else(owner_client: Client, target: str) -> None:
    assert owner_client.post("/theme/", {"theme": "dark", "next": target}).headers["location"] == "/"


def test_an_unknown_theme_is_the_systems(owner_client: Client) -> None:
    owner_client.post("/theme/", {"theme": "<b>"})
    assert owner_client.cookies["theme"].value == "system"
