"""Bindings of aliases: history, rollback, and the return to the last good binding after an alarm."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from toolbench.lab.models import AliasBinding, ModelAlias

Cause = AliasBinding.Cause
MAX_BINDINGS_SHOWN = 50
SETTING_COLUMNS = ("model_id", "profile", "strategy", "method", "layers", "policy_hash", "config_id")
# Those of SETTING_COLUMNS that are compared; equal policy hashes stand for equal `layers`.
_COMPARED_COLUMNS = ("model_id", "profile", "strategy", "method", "policy_hash", "config_id")


class RollbackError(Exception):
    """Raised if a rollback is not possible; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class BindingChange:
    """Reason of a new binding, and the canary that checks it.

    Attributes:
        who: name of the user; empty for the scheduler and without sign-in.
        decision: primary key of the decision record that approves the settings; None without one.
        canary: primary key of the schedule that compares the settings with the approved baseline; None without one.
        returns_on_alarm: whether an alarm of the canary gives the alias its last good binding again.
    """

    who: str = ""
    cause: AliasBinding.Cause = Cause.SAVED
    decision: int | None = None
    canary: int | None = None
    returns_on_alarm: bool = False


@dataclass(frozen=True, slots=True)
class BindingRow:
    """Binding in the history of an alias.

    Attributes:
        is_current: whether the alias has this binding now.
        can_return: whether a rollback to the binding is possible: it is not current, and its model exists.
    """

    binding: AliasBinding
    is_current: bool
    can_return: bool


def has_settings(alias: ModelAlias, settings: Mapping[str, Any]) -> bool:
    """Return whether the alias has these settings; `settings` has a value for each of SETTING_COLUMNS."""
    return all(getattr(alias, name) == settings[name] for name in _COMPARED_COLUMNS)


def add_binding(alias: ModelAlias, change: BindingChange) -> AliasBinding:
    """Add the settings of a saved alias to its history. Call it in the transaction that saved them."""
    return AliasBinding.objects.create(
        alias=alias,
        cause=change.cause,
        who=change.who,
        model_name=alias.model.name,
        provider_name=alias.model.provider.name,
        decision_id=change.decision,
        canary_id=change.canary,
        returns_on_alarm=change.returns_on_alarm,
        **{name: getattr(alias, name) for name in SETTING_COLUMNS},
    )


def bind_alias(alias: ModelAlias, settings: Mapping[str, Any], change: BindingChange) -> AliasBinding:
    """Give an alias other settings and add them to its history.

    Args:
        alias: the alias; its row is read again and locked.
        settings: a value for each of SETTING_COLUMNS.
        change: the reason of the new binding.

    Raises:
        ModelAlias.DoesNotExist: the alias was deleted meanwhile.
    """
    with transaction.atomic():
        row = ModelAlias.objects.select_for_update().get(pk=alias.pk)
        for name in SETTING_COLUMNS:
            setattr(row, name, settings[name])
        row.save()
        return add_binding(row, change)


def list_bindings(alias: ModelAlias) -> tuple[BindingRow, ...]:
    """Return the newest MAX_BINDINGS_SHOWN bindings of an alias, newest first, with one query."""
    rows = alias.bindings.select_related("decision", "canary")[:MAX_BINDINGS_SHOWN]
    return tuple(
        BindingRow(binding, is_current=index == 0, can_return=index > 0 and binding.model_id is not None)
        for index, binding in enumerate(rows)
    )


def load_current_bindings() -> Mapping[int, AliasBinding]:
    """Return the current binding of each alias by the alias' primary key, with one query."""
    newest = AliasBinding.objects.order_by("alias_id", "-pk").distinct("alias_id")
    return {binding.alias_id: binding for binding in newest.select_related("alias", "decision", "canary")}


def roll_back(alias: ModelAlias, binding_id: int, *, who: str) -> AliasBinding:
    """Give an alias the settings of an earlier binding, with its decision and its canary.

    Raises:
        RollbackError: the alias has no such binding, the binding is the current one, or its model was deleted.
        ModelAlias.DoesNotExist: the alias was deleted meanwhile.
    """
    with transaction.atomic():
        ModelAlias.objects.select_for_update().get(pk=alias.pk)
        rows = {row.pk: row for row in alias.bindings.all()}
        if binding_id not in rows:
            raise RollbackError(f"{alias.name} has no such binding. Choose one from its history.")
        if binding_id == max(rows):
            raise RollbackError(f"{alias.name} has this binding now. Choose an earlier one.")
        return _restore(alias, rows[binding_id], cause=Cause.ROLLED_BACK, who=who)


def return_to_last_good(alias: ModelAlias, alerting_ids: Iterable[int] = ()) -> AliasBinding | None:
    """Give an alias the settings of its last good binding again.

    That binding is the newest one that has a model, no alarm, and other settings than every newer binding. Call this
    function in a transaction that has locked the alias.

    Args:
        alias: the alias whose current binding is replaced.
        alerting_ids: primary keys of bindings whose canary has an open alert now; they are not good either.

    Returns:
        The new binding; None if no earlier binding is good.
    """
    alerting = set(alerting_ids)
    bindings = list(alias.bindings.all())
    newer_settings = {_identify_settings(current) for current in bindings[:1]}
    for binding in bindings[1:]:
        if _identify_settings(binding) in newer_settings:
            continue
        newer_settings.add(_identify_settings(binding))
        if binding.model_id is not None and not binding.alarm and binding.pk not in alerting:
            return _restore(alias, binding, cause=Cause.ALARM, who="")
    return None


def _identify_settings(binding: AliasBinding) -> Sequence[object]:
    return (binding.model_id, binding.policy_hash)


def _restore(alias: ModelAlias, binding: AliasBinding, *, cause: AliasBinding.Cause, who: str) -> AliasBinding:
    if binding.model_id is None:
        raise RollbackError(f"The model {binding.model_name} was deleted. Choose another binding.")
    settings = {name: getattr(binding, name) for name in SETTING_COLUMNS}
    change = BindingChange(who, cause, binding.decision_id, binding.canary_id, binding.returns_on_alarm)
    return bind_alias(alias, settings, change)
