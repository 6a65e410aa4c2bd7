"""What the launch form offers, and how it is narrowed."""

import pytest

from toolbench.evals import scenarios
from toolbench.lab import builtin_data
from toolbench.lab.models import Preset, SamplingProfile, ServiceAddress
from toolbench.lab.planning.launch_form import ProviderChoices, get_launch_choices, list_choices

pytestmark = pytest.mark.django_db


def personas() -> ProviderChoices:
    builtin_data.load_builtin_data()
    return next(provider for provider in get_launch_choices().providers if provider.simulated)


def test_personas_stand_in_groups_and_none_is_left_out() -> None:
    offered = personas()
    assert [group.title for group in offered.groups] == [
        "Steady", "Odd answers", "Calls in text", "Odd behaviour", "Endpoint trouble", "Endpoint demands", "Streams",
    ]  # fmt: skip
    assert len(offered.models) > 50
    assert max(len(group.models) for group in offered.groups) < 25


def test_a_filter_leaves_what_has_all_its_words_and_what_is_chosen() -> None:
    offered = personas()
    chosen = next(model for model in offered.models if model.label == "slow")
    left = offered.filter_models("STREAM cut", {chosen.value})
    assert {model.label for model in left.models} >= {"slow", "stream-cut"}
    assert "perfect" not in {model.label for model in left.models}
    assert offered.filter_models("", ()) == offered


def test_the_cast_is_folded_until_one_is_looked_for() -> None:
    offered = personas()
    assert not offered.open
    assert offered.filter_models("slow", ()).open


def test_a_provider_that_cannot_be_asked_now_says_why() -> None:
    assert personas().unavailable_reason == "not running"
    ServiceAddress.objects.create(name="simulated", host="here", url="http://x", ready_at="2026-01-01T00:00Z")
    assert personas().unavailable_reason == ""


def test_long_lists_are_folded_and_offer_all_the_same() -> None:
    builtin_data.load_builtin_data()
    choices = get_launch_choices()
    assert [choice.value for choice in choices.strategies[0].choices] == [
        "production", "baseline", "raw", "wire_standard",
    ]  # fmt: skip
    assert [strategy.collapsed_title for strategy in choices.strategies] == ["", f"{Preset.objects.count()} presets"]
    assert [choice.value for choice in choices.profiles[0].choices] == ["default"]
    assert len(list_choices(choices.profiles)) == SamplingProfile.objects.count()
    assert {choice.value for choice in list_choices(choices.scenarios)} == {
        scenario.slug for scenario in scenarios.list_scenarios()
    }


def test_sets_of_scenarios_are_those_of_the_words() -> None:
    sets = dict(get_launch_choices().sets)
    assert list(sets) == ["simple", "typical", "extreme", "all", *scenarios.PACKS]
    assert all(
        {scenario.slug for scenario in scenarios.select_scenarios(name)} == set(slugs) for name, slugs in sets.items()
    )


def test_scenarios_stand_below_the_name_of_their_group() -> None:
    headed = [choice for choice in list_choices(get_launch_choices().scenarios) if choice.heading]
    assert [choice.heading for choice in headed] == list(scenarios.group_scenarios())
    assert [choice.value for choice in headed] == [found[0].slug for found in scenarios.group_scenarios().values()]
