"""A scenario can be read: its prompts, its tools, its rule, and any instance by its seed."""

import pytest

from toolbench.evals import scenarios
from toolbench.lab.scenario_page import get_scenario


@pytest.mark.parametrize("slug", [scenario.slug for scenario in scenarios.all()])
def test_every_scenario_is_readable_in_both_kinds(slug: str) -> None:
    parity, drawn = get_scenario(slug), get_scenario(slug, "7")
    assert (parity.kind, drawn.kind, drawn.seed, drawn.next_seed) == ("parity", "drawn", 7, 8)
    assert parity.rule
    assert parity.checks


def test_one_seed_draws_one_instance() -> None:
    assert get_scenario("happy_path", "41").instance == get_scenario("happy_path", "41").instance
    assert get_scenario("happy_path", "41").instance != get_scenario("happy_path", "42").instance


@pytest.mark.parametrize("seed", ["", "x", "-1", "9" * 5000, "٣", "\0"])
def test_what_is_no_seed_shows_the_case_studys_own_wording(seed: str) -> None:
    assert get_scenario("happy_path", seed).kind == "parity"


def test_a_rule_of_the_case_study_is_claimed_only_of_its_own_scenarios() -> None:
    groups = {scenario.group for scenario in scenarios.all() if get_scenario(scenario.slug).published}
    assert groups == {"tools", "control"}


@pytest.mark.django_db
def test_an_unknown_scenario_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        get_scenario("no-such")
