"""The models page."""

import pytest
from django.test import Client

from toolbench.lab import catalogue

pytestmark = pytest.mark.django_db


def test_models_are_listed_and_found(owner_client: Client) -> None:
    catalogue.load()
    assert "mixed upstreams" in owner_client.get("/models/").content.decode()
    found = owner_client.get("/models/?q=grok").content.decode()
    assert "x-ai/grok-4.1-fast" in found
    assert "deepseek" not in found


def test_nothing_found_says_how_to_see_all(owner_client: Client) -> None:
    assert "Show all" in owner_client.get("/models/?q=%00nothing").content.decode()
