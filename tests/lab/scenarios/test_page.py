"""Scenario pages: prompts, tools, rule, and any instance by its seed."""

import pytest
from django.test import Client

from tests.page_html import read_html
from toolbench.evals import scenarios
from toolbench.lab.scenarios.catalogue import MAX_SEED
from toolbench.lab.scenarios.page import get_scenario_page


@pytest.mark.parametrize("slug", [scenario.slug for scenario in scenarios.list_scenarios()])
def test_get_scenario_page_shows_every_scenario_in_both_kinds(slug: str) -> None:
    parity, drawn = get_scenario_page(slug), get_scenario_page(slug, "7")
    assert (parity.kind, drawn.kind, drawn.seed, drawn.next_seed) == ("parity", "drawn", 7, 8)
    assert parity.rule
    assert parity.checks


def test_get_scenario_page_of_one_seed_shows_one_instance() -> None:
    assert get_scenario_page("happy_path", "41").instance == get_scenario_page("happy_path", "41").instance
    assert get_scenario_page("happy_path", "41").instance != get_scenario_page("happy_path", "42").instance


def test_get_scenario_page_largest_instance_seed_draws_instance() -> None:
    page = get_scenario_page("happy_path", str(MAX_SEED))
    assert (page.kind, page.seed) == ("drawn", MAX_SEED)


@pytest.mark.parametrize("seed", ["", "x", "-1", "9" * 5000, "٣", "\0"])
def test_get_scenario_page_invalid_seed_shows_published_wording(seed: str) -> None:
    assert get_scenario_page("happy_path", seed).kind == "parity"


def test_get_scenario_page_is_published_only_for_case_study() -> None:
    published = [
        scenario.slug for scenario in scenarios.list_scenarios() if get_scenario_page(scenario.slug).is_published
    ]
    assert published == [scenario.slug for scenario in scenarios.select_scenarios("all")]
    assert len(published) == 8


def test_scenario_page_names_published_wording_only_for_case_study(admin_client: Client) -> None:
    shown = {
        scenario.slug: "Published wording" in read_html(admin_client.get(f"/scenarios/{scenario.slug}/"))
        for scenario in scenarios.list_scenarios()
    }
    assert {slug for slug, is_shown in shown.items() if is_shown} == {
        scenario.slug for scenario in scenarios.select_scenarios("all")
    }


def test_get_scenario_page_shows_earlier_version() -> None:
    newest, earlier = get_scenario_page("happy_path", "7"), get_scenario_page("happy_path", "7", "1")
    assert (newest.instance.version, earlier.instance.version, newest.versions) == (2, 1, (2, 1))
    assert "Message 1" in earlier.instance.system
    assert "Message 1" not in newest.instance.system
    assert get_scenario_page("happy_path", "7", "99").instance == newest.instance
    assert get_scenario_page("happy_path").instance.version == 1


@pytest.mark.django_db
def test_get_scenario_page_of_unknown_scenario_raises_key_error() -> None:
    with pytest.raises(KeyError):
        get_scenario_page("no-such")
