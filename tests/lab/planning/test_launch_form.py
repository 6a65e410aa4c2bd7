"""Choices of the launch form, and filters on them."""

import pytest

from toolbench.evals import scenarios
from toolbench.lab import builtin_data
from toolbench.lab.models import Preset, SamplingProfile, ServiceAddress
from toolbench.lab.planning.launch_form import ProviderChoices, get_launch_choices, list_choices

pytestmark = pytest.mark.django_db


def load_simulated_choices() -> ProviderChoices:
    builtin_data.load_builtin_data()
    return next(provider for provider in get_launch_choices().providers if provider.simulated)


def test_get_launch_choices_groups_simulated_models() -> None:
    offered = load_simulated_choices()
    assert [group.title for group in offered.groups] == [
        "Steady", "Odd answers", "Calls in text", "Odd behaviour", "Endpoint trouble", "Endpoint demands", "Streams",
    ]  # fmt: skip
    assert len(offered.models) > 50
    assert max(len(group.models) for group in offered.groups) < 25


def test_filter_models_keeps_matching_and_chosen_models() -> None:
    offered = load_simulated_choices()
    chosen = next(model for model in offered.models if model.label == "slow")
    left = offered.filter_models("STREAM cut", {chosen.value})
    assert {model.label for model in left.models} >= {"slow", "stream-cut"}
    assert "perfect" not in {model.label for model in left.models}
    assert offered.filter_models("", ()) == offered


def test_filter_models_opens_simulated_provider() -> None:
    offered = load_simulated_choices()
    assert not offered.open
    assert offered.filter_models("slow", ()).open


def test_get_launch_choices_gives_reason_for_unavailable_provider() -> None:
    assert load_simulated_choices().unavailable_reason == "not running"
    ServiceAddress.objects.create(name="simulated", host="here", url="http://x", ready_at="2026-01-01T00:00Z")
    assert load_simulated_choices().unavailable_reason == ""


def test_get_launch_choices_collapses_long_lists_without_omissions() -> None:
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


def test_get_launch_choices_sets_equal_selected_scenarios() -> None:
    sets = dict(get_launch_choices().sets)
    assert list(sets) == ["simple", "typical", "extreme", "all", *scenarios.PACKS]
    assert all(
        {scenario.slug for scenario in scenarios.select_scenarios(name)} == set(slugs) for name, slugs in sets.items()
    )


def test_get_launch_choices_scenarios_have_headings_of_groups() -> None:
    headed = [choice for choice in list_choices(get_launch_choices().scenarios) if choice.heading]
    assert [choice.heading for choice in headed] == list(scenarios.group_scenarios())
    assert [choice.value for choice in headed] == [found[0].slug for found in scenarios.group_scenarios().values()]
