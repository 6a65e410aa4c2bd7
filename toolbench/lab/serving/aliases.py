"""Aliases of the gateway, which serve a measured configuration or settings that a user chose."""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from toolbench.engine.types import JsonObject
from toolbench.installation import replace_wildcard_host
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import AliasBinding, ModelAlias, RunConfig, ServiceAddress
from toolbench.lab.planning.auto_method import NO_METHOD
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import LaunchError, RunRequest
from toolbench.lab.serving.bindings import BindingChange, add_binding, bind_alias, has_settings, load_current_bindings

_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")
_PLANNED_SCENARIO = "chat_only"  # a plan needs a scenario, but the policy layers do not depend on it
MAX_FALLBACKS = 5
GATEWAY_NAME = "gateway"  # name of the ServiceAddress of the gateway
_FIELD_BY_PLAN_FIELD = {"models": "model", "profiles": "profile", "strategies": "strategy", "methods": "method"}


@dataclass(frozen=True, slots=True)
class AliasChoice:
    """Settings of an alias that a person enters.

    Attributes:
        model: primary key of the model; 0 for that of `config`.
        profile: sampling profile; "" for that of `config`, or for `default` without `config`.
        strategy: as in a RunRequest; "" for that of `config`, or for `production` without `config`.
        method: as in a RunRequest; "" for that of `config`, or for `native` without `config`.
        config: primary key of the measured configuration whose frozen settings are served. `model`, `profile`,
            `strategy` and `method`, unless 0 or "", then have to equal its settings. None to serve these four settings.
        repairs: whether the gateway re-prompts once after an invalid call.
        fallbacks: names of the aliases that are tried after a failure, in order.
        keep_percent: percentage of requests that are stored as traces, 0 to 100.
        keep_bodies: whether traces contain the bodies.
        binding: primary key of the current binding that the person saw; None for a new alias or one without bindings.
    """

    name: str
    model: int
    profile: str = ""
    strategy: str = ""
    method: str = ""
    config: int | None = None
    repairs: bool = True
    fallbacks: tuple[str, ...] = ()
    keep_percent: int = 100
    keep_bodies: bool = True
    binding: int | None = None

    @property
    def plan_settings(self) -> tuple[str, str, str]:
        """Profile, strategy and method, with the defaults of an alias without a configuration."""
        return self.profile or "default", self.strategy or "production", self.method or "native"


@dataclass(frozen=True, slots=True)
class AliasRow:
    """Alias with its current binding.

    Attributes:
        binding: the current binding; None for an alias without bindings.
    """

    alias: ModelAlias
    binding: AliasBinding | None


def save_alias(
    choice: AliasChoice,
    *,
    owner: AbstractBaseUser | None,
    alias: ModelAlias | None = None,
    change: BindingChange | None = None,
) -> ModelAlias:
    """Create an alias, or change `alias` if it is given.

    New or changed settings are frozen. If they differ from the current settings, they are added to the history of the
    alias as a binding. If the name changes, the fallbacks of the other aliases get the new name.

    Args:
        choice: the settings.
        owner: the user who saves, and who becomes the owner of a new alias; None without sign-in.
        alias: the alias to change; None for a new one.
        change: the reason of the binding; None for the reason that `owner` saved the settings.

    Raises:
        InvalidFieldsError: a field is not valid, or the alias was deleted meanwhile; for `binding`, the alias got other
            settings meanwhile.
    """
    with transaction.atomic():
        rows = {row.pk: row for row in ModelAlias.objects.select_for_update().order_by("pk")}
        row = rows.pop(alias.pk, None) if alias else ModelAlias(owner_id=owner.pk if owner else None)
        if row is None:
            raise InvalidFieldsError({"name": ["This alias was deleted meanwhile. Add it as a new one."]})
        errors = _find_errors(choice, row, {other.name for other in rows.values()})
        if errors:
            raise InvalidFieldsError(errors)
        frozen = {} if _matches_saved_settings(row, choice) else _freeze(choice)
        is_changed = bool(frozen) and not (row.pk and has_settings(row, frozen))
        old_name = row.name
        row.name, row.repairs, row.fallbacks = choice.name, choice.repairs, list(choice.fallbacks)
        row.keep_percent, row.keep_bodies = choice.keep_percent, choice.keep_bodies
        for name, value in frozen.items():
            setattr(row, name, value)
        if choice.config is not None:
            _check_same_settings(choice, row)
        _save_row(row)
        if old_name not in ("", choice.name):
            _rename_fallbacks(rows.values(), old_name, choice.name)
        if is_changed:
            add_binding(row, change or BindingChange(who=owner.get_username() if owner else ""))
    return row


def _save_row(row: ModelAlias) -> None:
    """Save an alias.

    Raises:
        InvalidFieldsError: another process saved an alias of this name first.
    """
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise InvalidFieldsError({"name": [_describe_taken_name(row.name)]}) from None


def _rename_fallbacks(aliases: Iterable[ModelAlias], old_name: str, new_name: str) -> None:
    for alias in aliases:
        if old_name in alias.fallbacks:
            names = [new_name if name == old_name else name for name in alias.fallbacks]
            alias.fallbacks = list(dict.fromkeys(names))
            alias.save(update_fields=["fallbacks", "changed_at"])


def _matches_saved_settings(alias: ModelAlias, choice: AliasChoice) -> bool:
    """Return whether the choice has the same configuration as the saved alias or, without any, the same settings."""
    if choice.config is not None or alias.config_id is not None:
        return choice.config == alias.config_id
    return (choice.model, *choice.plan_settings) == (alias.model_id, alias.profile, alias.strategy, alias.method)


def _check_same_settings(choice: AliasChoice, alias: ModelAlias) -> None:
    """Check that the settings that the choice names equal those of its configuration.

    Args:
        choice: a choice with a configuration.
        alias: the alias, which already has the settings of the configuration.

    Raises:
        InvalidFieldsError: the choice names a different setting.
    """
    served = {"model": alias.model_id, "profile": alias.profile, "strategy": alias.strategy, "method": alias.method}
    errors = {
        name: [f"Leave out {name} or config: configuration {choice.config} has another {name}."]
        for name, value in served.items()
        if getattr(choice, name) and getattr(choice, name) != value
    }
    if errors:
        raise InvalidFieldsError(errors)


def _find_errors(choice: AliasChoice, alias: ModelAlias, other_names: Container[str]) -> dict[str, list[str]]:
    """Return sentences about the invalid fields of a choice, by field; `_freeze` checks the other fields."""
    errors: dict[str, list[str]] = {}
    if not _NAME_PATTERN.fullmatch(choice.name):
        errors["name"] = ["Use letters, digits, dots, hyphens, underscores and slashes, at most 100 characters."]
    elif choice.name in other_names:
        errors["name"] = [_describe_taken_name(choice.name)]
    unknown = [name for name in choice.fallbacks if name not in other_names]
    if unknown:
        errors["fallbacks"] = [f"There is no other alias {', '.join(unknown)[:200]}."]
    elif len(choice.fallbacks) > MAX_FALLBACKS:
        errors["fallbacks"] = [f"An alias has at most {MAX_FALLBACKS} fallbacks."]
    if not 0 <= choice.keep_percent <= 100:
        errors["keep_percent"] = ["The share is 0 to 100 percent."]
    if alias.pk and choice.binding != alias.bindings.values_list("pk", flat=True).first():
        errors["binding"] = [
            f"Nothing was saved: {alias.name} got other settings after you opened this form. It shows the current "
            "settings now. Check them and save again."
        ]
    return errors


def _describe_taken_name(name: str) -> str:
    return f"The alias {name} already exists. Choose another name."


def _freeze(choice: AliasChoice) -> JsonObject:
    """Return the columns of an alias with these settings.

    Raises:
        InvalidFieldsError: a setting is not valid.
    """
    try:
        return freeze_config(choice.config) if choice.config is not None else _freeze_choice(choice)
    except LaunchError as error:
        raise InvalidFieldsError(
            {_FIELD_BY_PLAN_FIELD.get(name, name): sentences for name, sentences in error.errors.items()}
        ) from None


def freeze_config(config_id: int) -> JsonObject:
    """Return the columns of an alias that serves a measured configuration.

    Raises:
        LaunchError: there is no such configuration, its model was deleted, or no method can be used with it.
    """
    config = RunConfig.objects.filter(pk=config_id).first()
    if config is None or config.model_id is None:
        raise LaunchError({"config": [f"There is no configuration {config_id}, or its model was deleted."]})
    if config.method == NO_METHOD:
        raise LaunchError({"config": [f"No method can be used with configuration {config_id}. Choose another one."]})
    return {
        "model_id": config.model_id,
        "profile": config.profile,
        "strategy": config.strategy,
        "method": config.method,
        "layers": config.layers,
        "policy_hash": config.policy_hash,
        "config_id": config.pk,
    }


def promote_config(name: str, config_id: int, change: BindingChange, *, owner: AbstractBaseUser | None) -> ModelAlias:
    """Give the alias of this name the settings of a measured configuration.

    The alias is created if there is none.

    Raises:
        InvalidFieldsError: the name of a new alias is not valid, or the configuration cannot be served.
        ModelAlias.DoesNotExist: the alias was deleted meanwhile.
    """
    alias = ModelAlias.objects.filter(name=name).first()
    if alias is None:
        return save_alias(AliasChoice(name, 0, config=config_id), owner=owner, change=change)
    bind_alias(alias, freeze_config(config_id), change)
    return alias


def _freeze_choice(choice: AliasChoice) -> JsonObject:
    """Return the columns of an alias with these settings, frozen as a launch would freeze them.

    Raises:
        LaunchError: a setting is not valid.
    """
    profile, strategy, method = choice.plan_settings
    request = RunRequest(
        models=(choice.model,),
        profiles=(profile,),
        strategies=(strategy,),
        methods=(method,),
        scenarios=(_PLANNED_SCENARIO,),
        trials=1,
        tool_use_mode="relaxed",
        enforce_applicability=False,
    )
    (config,) = build_plan(request).configs
    return {
        "model_id": config.model,
        "profile": config.profile,
        "strategy": config.strategy,
        "method": config.method,
        "layers": [[name, patch] for name, patch in config.layers],
        "policy_hash": config.policy_hash,
        "config_id": None,
    }


def list_aliases() -> Sequence[AliasRow]:
    """Return all aliases with their current bindings, sorted by name, with two queries.

    The aliases are loaded with their models, providers, configurations and runs.
    """
    bindings = load_current_bindings()
    aliases = ModelAlias.objects.select_related("model__provider", "config__run")
    return [AliasRow(alias, bindings.get(alias.pk)) for alias in aliases]


def list_alias_names() -> Sequence[str]:
    """Return the names of all aliases, sorted."""
    return list(ModelAlias.objects.values_list("name", flat=True))


def list_aliases_with_fallback(alias: ModelAlias) -> Sequence[str]:
    """Return the names of the aliases that have this one as a fallback, sorted."""
    aliases = ModelAlias.objects.filter(fallbacks__contains=[alias.name])
    return list(aliases.order_by("name").values_list("name", flat=True))


def find_gateway_url() -> str:
    """Return the URL at which other machines reach the registered gateway; "" if none is registered."""
    url = ServiceAddress.objects.filter(name=GATEWAY_NAME).values_list("url", flat=True).first() or ""
    return replace_wildcard_host(url, settings.BASE_URL)
