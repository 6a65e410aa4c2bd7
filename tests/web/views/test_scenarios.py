"""Scenarios can be read and drawn."""

import pytest
from django.test import Client

from toolbench.evals import scenarios

pytestmark = pytest.mark.django_db


def test_the_list_names_every_scenario(owner_client: Client) -> None:
    text = owner_client.get("/scenarios/").content.decode()
    assert all(scenario.slug in text for scenario in scenarios.all())


@pytest.mark.parametrize("slug", [scenario.slug for scenario in scenarios.all()])
def test_every_scenario_opens_and_draws(owner_client: Client, slug: str) -> None:
    assert "own wording" in owner_client.get(f"/scenarios/{slug}/").content.decode()
    assert "drawn from seed 12" in owner_client.get(f"/scenarios/{slug}/?seed=12").content.decode()
