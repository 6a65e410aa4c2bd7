"""Saving of aliases: settings that stay frozen, saves at the same time, and new names."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import connections, transaction

from tests.factories import make_config, make_model, make_run
from tests.locks import is_other_connection_blocked
from tests.wait import wait_until
from toolbench.engine.policy.settings import resolve_policy
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import ModelAlias, SamplingProfile
from toolbench.lab.serving.aliases import AliasChoice, freeze_config, save_alias
from toolbench.lab.serving.bindings import BindingChange, Cause, bind_alias

pytestmark = pytest.mark.django_db


def make_choice(name: str = "weather", **fields: Any) -> AliasChoice:
    SamplingProfile.objects.get_or_create(name="mild", defaults={"options": {"temperature": 0.3}})
    return replace(AliasChoice(name, make_model().pk, profile="mild"), **fields)


def save_changed(alias: ModelAlias, **changes: Any) -> ModelAlias:
    """Save the alias with these changes by the form of its current binding."""
    binding = alias.bindings.values_list("pk", flat=True).first()
    return save_alias(make_choice(**{"name": alias.name, "binding": binding} | changes), owner=None, alias=alias)


def test_save_alias_keeps_frozen_settings_until_one_changes() -> None:
    alias = save_alias(make_choice(), owner=None)
    SamplingProfile.objects.filter(name="mild").update(options={"temperature": 0.9})
    saved = save_changed(alias, keep_percent=7)
    assert (saved.keep_percent, saved.layers, saved.bindings.count()) == (7, alias.layers, 1)
    saved = save_changed(alias, strategy="raw")
    assert saved.layers != alias.layers
    assert saved.bindings.count() == 2


def test_save_alias_serves_profile_that_does_not_apply_to_model() -> None:
    SamplingProfile.objects.create(name="cold", applies_to="qwen*", options={"temperature": 0.1})
    alias = save_alias(make_choice(profile="cold"), owner=None)
    policy = resolve_policy((name, patch) for name, patch in alias.layers).policy
    assert (alias.profile, policy.llm_options_defaults["temperature"]) == ("cold", 0.1)


def test_save_alias_after_changed_binding_is_refused() -> None:
    alias = save_alias(make_choice(), owner=None)
    binding_id = alias.bindings.get().pk
    config = make_config(make_run(), make_model("vendor/good"), policy_hash="good")
    bind_alias(alias, freeze_config(config.pk), BindingChange(cause=Cause.ALARM))
    with pytest.raises(InvalidFieldsError) as caught:
        save_changed(alias, binding=binding_id, keep_percent=7)
    assert list(caught.value.errors) == ["binding"]
    alias.refresh_from_db()
    assert (alias.config_id, alias.keep_percent, alias.bindings.count()) == (config.pk, 100, 2)


def test_save_alias_refuses_other_settings_than_those_of_config() -> None:
    config = make_config(make_run(), make_model("vendor/good"), strategy="raw")
    choice = AliasChoice("weather", 0, config=config.pk)
    with pytest.raises(InvalidFieldsError) as caught:
        save_alias(replace(choice, strategy="production"), owner=None)
    assert list(caught.value.errors) == ["strategy"]
    alias = save_alias(replace(choice, strategy="raw"), owner=None)
    assert (alias.config_id, alias.strategy) == (config.pk, "raw")


def test_save_alias_refuses_config_without_usable_method() -> None:
    config = make_config(make_run(), make_model("vendor/good"), method="none")
    with pytest.raises(InvalidFieldsError) as caught:
        save_alias(AliasChoice("weather", 0, config=config.pk), owner=None)
    assert list(caught.value.errors) == ["config"]


def test_save_alias_with_new_name_updates_fallbacks_of_others() -> None:
    alias = save_alias(make_choice(), owner=None)
    other = save_alias(make_choice("other", fallbacks=("weather",)), owner=None)
    with pytest.raises(InvalidFieldsError, match="There is no other alias weather"):
        save_changed(alias, name="forecast", fallbacks=("weather",))
    save_changed(alias, name="forecast", fallbacks=("other",))
    other.refresh_from_db()
    assert other.fallbacks == ["forecast"]
    assert list(ModelAlias.objects.values_list("name", "fallbacks")) == [
        ("forecast", ["other"]),
        ("other", ["forecast"]),
    ]


def test_save_alias_of_deleted_alias_is_refused() -> None:
    alias = save_alias(make_choice(), owner=None)
    ModelAlias.objects.all().delete()
    with pytest.raises(InvalidFieldsError, match="was deleted meanwhile"):
        save_alias(make_choice(), owner=None, alias=alias)


@pytest.mark.django_db(transaction=True)
def test_save_alias_second_with_equal_name_is_refused() -> None:
    choice = make_choice()

    def save_second() -> dict[str, list[str]]:
        try:
            save_alias(choice, owner=None)
        except InvalidFieldsError as error:
            return error.errors
        finally:
            connections.close_all()
        return {}

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            save_alias(choice, owner=None)
            second = pool.submit(save_second)
            wait_until(is_other_connection_blocked)
        assert second.result(timeout=30) == {"name": ["The alias weather already exists. Choose another name."]}
    assert ModelAlias.objects.get().bindings.count() == 1
