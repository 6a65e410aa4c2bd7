"""The sampling profiles page."""

import pytest
from django.test import Client

from toolbench.lab import builtin_data


@pytest.mark.django_db
def test_profiles_stand_with_their_options(owner_client: Client) -> None:
    assert "No profile is loaded" in owner_client.get("/profiles/").content.decode()
    builtin_data.load_builtin_data()
    text = owner_client.get("/profiles/").content.decode()
    assert "deepseek_v3_2_local_recommended" in text
    assert "temperature 1.0" in text
