"""History of an alias' bindings, rollback, and the choice of the last good binding."""

from typing import Any

import pytest

from tests.factories import make_cell, make_config, make_model, make_provider, make_run
from toolbench.lab.models import AliasBinding, ModelAlias
from toolbench.lab.serving.aliases import (
    AliasChoice,
    freeze_config,
    list_aliases,
    list_aliases_with_fallback,
    save_alias,
)
from toolbench.lab.serving.bindings import (
    BindingChange,
    Cause,
    RollbackError,
    bind_alias,
    list_bindings,
    return_to_last_good,
    roll_back,
)

pytestmark = pytest.mark.django_db


def make_frozen(name: str) -> dict[str, Any]:
    """Return settings of an alias, measured with a model of this name."""
    config = make_config(make_run(), make_model(name), policy_hash=f"hash of {name}")
    make_cell(config)
    return freeze_config(config.pk)


def promote(alias: ModelAlias, name: str, **fields: Any) -> AliasBinding:
    return bind_alias(alias, make_frozen(name), BindingChange("ann", Cause.PROMOTED, **fields))


@pytest.fixture
def alias() -> ModelAlias:
    """Return an alias that was created for the model `first`."""
    config_id = make_frozen("first")["config_id"]
    return save_alias(AliasChoice("weather", 0, config=config_id), owner=None)


def read_history(alias: ModelAlias) -> list[tuple[str, str, str]]:
    return [(row.binding.cause, row.binding.who, row.binding.model_name) for row in list_bindings(alias)]


def test_list_bindings_names_cause_user_and_model_newest_first(alias: ModelAlias) -> None:
    second = promote(alias, "second")
    assert read_history(alias) == [("promoted", "ann", "second"), ("saved", "", "first")]
    alias.refresh_from_db()
    assert (alias.model.name, alias.config_id) == ("second", second.config_id)
    assert [(row.is_current, row.can_return) for row in list_bindings(alias)] == [(True, False), (False, True)]
    (row,) = list_aliases()
    assert row.binding == second


def test_list_bindings_unchanged_when_other_fields_are_saved(alias: ModelAlias) -> None:
    choice = AliasChoice("renamed", 0, config=alias.config_id, keep_percent=7, binding=alias.bindings.get().pk)
    save_alias(choice, owner=None, alias=alias)
    assert [row.binding.cause for row in list_bindings(alias)] == ["saved"]
    assert ModelAlias.objects.get().name == "renamed"


def test_roll_back_restores_settings_and_adds_binding(alias: ModelAlias) -> None:
    first = alias.bindings.get()
    promote(alias, "second")
    roll_back(alias, first.pk, who="bob")
    alias.refresh_from_db()
    assert (alias.model.name, alias.layers, alias.policy_hash) == ("first", first.layers, "hash of first")
    assert read_history(alias)[0] == ("rolled_back", "bob", "first")


def test_roll_back_refuses_unknown_current_and_deleted(alias: ModelAlias) -> None:
    first, second = alias.bindings.get(), promote(alias, "second")
    other = save_alias(AliasChoice("other", 0, config=alias.config_id), owner=None).bindings.get()
    for binding_id, sentence in ((other.pk, "no such binding"), (second.pk, "has this binding now")):
        with pytest.raises(RollbackError, match=sentence):
            roll_back(alias, binding_id, who="")
    make_model("first").delete()
    with pytest.raises(RollbackError, match="The model first was deleted"):
        roll_back(alias, first.pk, who="")
    assert not list_bindings(alias)[1].can_return


def test_return_to_last_good_skips_alarms_alerts_and_deleted_models(alias: ModelAlias) -> None:
    promote(alias, "alarmed")
    alias.bindings.filter(model_name="alarmed").update(alarm="Success dropped.")
    alerting = promote(alias, "alerting")
    promote(alias, "gone")
    promote(alias, "current")
    make_model("gone").delete()
    restored = return_to_last_good(alias, [alerting.pk])
    assert restored is not None
    assert (restored.model_name, restored.cause) == ("first", "alarm")


def test_return_to_last_good_is_none_if_all_settings_failed(alias: ModelAlias) -> None:
    promote(alias, "second")
    restored = return_to_last_good(alias)
    assert restored is not None
    alias.bindings.update(alarm="Success dropped.")
    assert return_to_last_good(alias) is None
    assert alias.bindings.count() == 3


def test_return_to_last_good_without_bindings_is_none(alias: ModelAlias) -> None:
    alias.bindings.all().delete()
    assert return_to_last_good(alias) is None


def test_list_aliases_with_fallback_names_aliases_that_use_it(alias: ModelAlias) -> None:
    model = make_model("m", provider=make_provider("Other"))
    ModelAlias.objects.create(name="chained", model=model, fallbacks=["other", "weather"])
    assert list_aliases_with_fallback(alias) == ["chained"]
