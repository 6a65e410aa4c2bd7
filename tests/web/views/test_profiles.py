"""The sampling profiles page."""

import pytest
from django.test import Client

from tests.page_html import read_html
from toolbench.lab import builtin_data


@pytest.mark.django_db
def test_profiles_stand_with_their_options(owner_client: Client) -> None:
    assert "No profile is loaded" in read_html(owner_client.get("/profiles/"))
    builtin_data.load_builtin_data()
    text = read_html(owner_client.get("/profiles/"))
    assert "deepseek_v3_2_local_recommended" in text
    assert "temperature 1.0" in text
