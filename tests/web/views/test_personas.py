"""The simulated models page."""

import pytest
from django.test import Client

from tests.page_html import read_html
from toolbench.lab import builtin_data


@pytest.mark.django_db
def test_personas_stand_with_their_true_rates_and_are_said_to_be_made_up(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    text = read_html(owner_client.get("/demo/personas/"))
    assert "Nothing here is a real model." in text
    assert "reliable-90" in text
