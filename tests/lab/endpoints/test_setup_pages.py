"""Data of the set-up pages: providers, models, presets and profiles."""

from pathlib import Path

import pytest
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from tests.factories import make_config, make_model, make_provider, make_run
from toolbench.lab import builtin_data
from toolbench.lab.endpoints.connect import ConnectionSettings, connect_provider
from toolbench.lab.endpoints.setup_pages import (
    MAX_CHOSEN_MODELS,
    get_models,
    get_presets,
    get_profiles,
    get_provider,
    get_providers,
)
from toolbench.lab.library.profiles import get_profile_page
from toolbench.lab.models import SamplingProfile

pytestmark = pytest.mark.django_db


def test_get_provider_with_lost_key_file_says_what_to_do(settings: Settings, tmp_path: Path) -> None:
    settings.KEY_FILE = tmp_path / "keys"
    provider = connect_provider(ConnectionSettings(name="Mine", base_url="https://example.test", key="secret"))
    assert get_provider(provider.pk).key == "stored, encrypted"
    settings.KEY_FILE.unlink()
    line = get_provider(provider.pk)
    assert line.state == "infra"
    assert "Enter the key of Mine again" in line.state_text


def test_get_provider_names_unset_key_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    provider = make_provider(key_source="environment", key_env="NO_SUCH_KEY")
    assert "NO_SUCH_KEY" in get_provider(provider.pk).state_text


def test_get_provider_counts_models_and_runs() -> None:
    model = make_model()
    make_model("retired", retired=True)
    make_config(make_run(), model)
    line = get_provider(model.provider_id)
    assert (line.model_count, line.run_count, line.is_connected) == (1, 1, True)


def test_get_provider_plan_query_names_models_up_to_limit() -> None:
    models = [make_model(f"vendor/model-{number:02}") for number in range(MAX_CHOSEN_MODELS)]
    provider_id = models[0].provider_id
    chosen = "&".join(f"models={model.pk}" for model in models)
    assert get_provider(provider_id).plan_query == f"{chosen}&set=typical"
    make_model("vendor/one-more")
    assert get_provider(provider_id).plan_query == "set=typical"
    assert get_provider(make_provider("Empty").pk).plan_query == ""


def test_get_providers_takes_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    builtin_data.load_builtin_data()
    with django_assert_num_queries(1):
        get_providers()


def test_get_providers_reads_all_budgets_with_two_queries(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for number in range(3):
        make_provider(f"Example {number}", budget_per_month=5.0)
    with django_assert_num_queries(3):
        assert len(get_providers()) == 3


def test_get_models_groups_by_provider_with_retired_last() -> None:
    builtin_data.load_builtin_data()
    groups = {group.provider.name: group.models for group in get_models()}
    assert len(groups["OpenRouter"]) == 17
    assert groups["OpenRouter"][-1].model.retired
    assert [line.model.name for group in get_models("grok") for line in group.models] == ["x-ai/grok-4.1-fast"]


def test_get_presets_shows_settings_and_models_that_use_it() -> None:
    builtin_data.load_builtin_data()
    presets = {preset.name: preset for preset in get_presets()}
    assert presets["tool_use_disabled"].settings == ("tool_use_mode",)
    assert [model.name for model in presets["tool_use_disabled"].used_by] == ["minimax/minimax-m2-her"]


def test_get_profiles_counts_models_that_each_applies_to() -> None:
    builtin_data.load_builtin_data()
    profiles = {profile.name: profile for profile in get_profiles()}
    assert len(profiles) == 16
    assert profiles["grok_default"].model_count == 1


def test_get_profiles_counts_the_models_that_the_page_of_a_profile_counts() -> None:
    SamplingProfile.objects.create(name="any", applies_to="*")
    for provider in (make_provider("One"), make_provider("Other")):
        make_model("vendor/same", provider=provider)
    make_model("vendor/gone", retired=True)
    (profile,) = get_profiles()
    assert profile.model_count == len(get_profile_page("any").models) == 1
