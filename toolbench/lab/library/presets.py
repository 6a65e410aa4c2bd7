"""Presets of the library: their page, and functions to create, edit and delete them."""

import json
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection

from toolbench.engine.errors import EngineError, PolicyError
from toolbench.engine.policy.keys import normalise_name
from toolbench.engine.policy.presets import STRATEGIES, UnknownPresetError, get_preset
from toolbench.engine.policy.settings import KeyDescription, describe_keys, resolve_policy
from toolbench.engine.repairs.registry import check_repairs
from toolbench.engine.transforms.apply import KINDS, check_names
from toolbench.engine.types import JsonObject
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.entries import EntryFunctions, EntryPage, create_entry, delete_entry, edit_entry, list_active
from toolbench.lab.library.values import is_same, render_indented
from toolbench.lab.library.versions import EntryVersion, compare_versions, list_versions
from toolbench.lab.models import Model, Preset, RunConfig
from toolbench.lab.planning.policy_page import PolicyKeyRow, PolicyQuery, get_policy_page
from toolbench.lab.sql import load_statement


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """Settings of a model that uses a preset as its strategy.

    Attributes:
        model: primary key of the chosen model, else of the first in `models`; None if there is no model.
        title: description of the configuration.
        keys: the settings that a policy layer sets.
        unchanged: number of the other settings, which have the engine's default.
        errors: why the settings cannot be resolved; empty if they can.
        models: the models that can be chosen.
    """

    model: int | None
    title: str
    keys: tuple[PolicyKeyRow, ...]
    unchanged: int
    errors: tuple[str, ...]
    models: tuple[Model, ...]


@dataclass(frozen=True, slots=True)
class PresetPage(EntryPage[Preset]):
    """Data of the page of one preset.

    Attributes:
        patch: the patch as indented JSON.
        used_by: the models that have the preset as a workaround.
        effective: the settings of one model with the preset.
    """

    patch: str
    used_by: tuple[Model, ...]
    effective: EffectiveSettings


def list_settings() -> tuple[KeyDescription, ...]:
    """Return the settings that a preset may change."""
    return describe_keys()


def get_preset_page(
    name: str, *, old: int | None = None, new: int | None = None, model: int | None = None
) -> PresetPage:
    """Return the data of a preset's page.

    Args:
        name: name of the preset.
        old: number of the version to compare with; None for the one before the newest.
        new: number of the version that is compared with `old`; None for the newest.
        model: primary key of the model for `PresetPage.effective`; None or an unknown one stands for the first model.

    Raises:
        Preset.DoesNotExist: there is no such preset.
    """
    preset = Preset.objects.get(name=name)
    versions = _count_runs(preset, list_versions(preset))
    return PresetPage(
        entry=preset,
        versions=versions,
        difference=compare_versions(versions, old, new),
        active_entries=list_active(Preset),
        patch=render_indented(preset.patch),
        used_by=_list_models_using(name),
        effective=_get_effective_settings(name, model),
    )


def create_preset(name: str, content: JsonObject, username: str) -> Preset:
    """Save a new preset with its first version.

    Raises:
        InvalidFieldsError: the name or a setting is not accepted.
    """
    check_patch(content["patch"])
    reserved = {normalise_name(name), *STRATEGIES} if _is_builtin(name) else STRATEGIES
    return create_entry(Preset(name=name, **content), username, reserved)


def edit_preset(preset: Preset, content: JsonObject, read_number: int, username: str) -> int:
    """Save a new version of a preset and return its number. Runs keep the layers that they froze.

    Raises:
        InvalidFieldsError: the preset is built in or archived, a setting is not accepted, or another version was saved
            meanwhile.
    """
    check_patch(content["patch"])
    return edit_entry(preset, content, read_number, username)


def delete_preset(preset: Preset) -> bool:
    """Delete a preset, or archive it if a run used it; return whether it was archived.

    Raises:
        InvalidFieldsError: the preset is built in, or a workaround of a model.
    """
    if models := _list_models_using(preset.name):
        names = ", ".join(str(model) for model in models[:5])
        raise InvalidFieldsError({"name": [f"The preset is a workaround of {names}. Remove it there first."]})
    return delete_entry(preset, is_used=_is_used(preset.name))


PRESET_FUNCTIONS = EntryFunctions("preset", Preset, create_preset, edit_preset, delete_preset)


def check_patch(patch: JsonObject) -> None:
    """Check that the patch is not empty and that the engine accepts its settings, transforms and repairs.

    Raises:
        InvalidFieldsError: the patch is empty or a setting is not accepted; the errors are given by setting.
    """
    if not patch:
        raise InvalidFieldsError({"patch": ["Set at least one setting."]})
    errors: dict[str, list[str]] = {}
    try:
        resolve_policy((("preset", patch),))
    except PolicyError as error:
        for problem in error.problems:
            errors.setdefault(problem.key, []).append(_to_sentence(problem.message))
    for key, value in patch.items():
        if key not in errors and (sentence := _find_unknown_name(key, value)):
            errors[key] = [sentence]
    if errors:
        raise InvalidFieldsError(errors)


def _to_sentence(message: str) -> str:
    return f"{message[:1].upper()}{message[1:]}."


def _find_unknown_name(key: str, value: Any) -> str:
    """Return a sentence about an unknown transform or repair in the value of a setting; "" if it names none."""
    names = value.split(",") if isinstance(value, str) else value or ()
    kind = key.removesuffix("_transforms")
    try:
        if key == "argument_repairs":
            check_repairs(names, strict=True)
        elif kind != key and kind in KINDS:
            check_names(kind, names)
    except EngineError as error:
        return _to_sentence(str(error))
    return ""


def _is_builtin(name: str) -> bool:
    """Return whether the engine has a built-in preset with this name or alias.

    The engine would use it instead of a user's preset of that name.
    """
    try:
        get_preset(name)
    except UnknownPresetError:
        return False
    return True


def _list_models_using(name: str) -> tuple[Model, ...]:
    """Return the models that have the preset as a workaround."""
    return tuple(Model.objects.filter(workarounds__contains=[name]).order_by("name"))


def _is_used(name: str) -> bool:
    configs = RunConfig.objects
    return any(configs.filter(layers__contains=[[layer]]).exists() for layer in _list_layer_names(name))


def _list_layer_names(name: str) -> tuple[str, str]:
    """Return the names of the layers in which a run freezes the preset: as its strategy, and as a workaround."""
    return f"preset {name}", f"workaround {name}"


def _count_runs(preset: Preset, versions: tuple[EntryVersion, ...]) -> tuple[EntryVersion, ...]:
    """Add to each version the number of runs that froze its patch."""
    layer_names = list(_list_layer_names(preset.name))
    with connection.cursor() as cursor:
        cursor.execute(load_statement("library/count_frozen_patches"), [layer_names, layer_names])
        patches = [(json.loads(patch), runs) for patch, runs in cursor.fetchall()]
    return tuple(
        replace(version, runs=sum(runs for patch, runs in patches if is_same(patch, version.content.get("patch", {}))))
        for version in versions
    )


def _get_effective_settings(name: str, model_id: int | None) -> EffectiveSettings:
    page = get_policy_page(PolicyQuery(model=model_id, strategy=name))
    model_ids = [model.pk for model in page.models]
    first_id = model_ids[0] if model_ids else None
    return EffectiveSettings(
        model=model_id if model_id in model_ids else first_id,
        title=page.title,
        keys=tuple(key for key in page.keys if not key.is_default),
        unchanged=sum(key.is_default for key in page.keys),
        errors=page.errors,
        models=page.models,
    )
