"""Presets, which are named patches of the policy, and the layers of strategies.

A key that a patch does not have keeps the value of the layers below; null resets it to the engine's default.
"""

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolbench.engine.errors import EngineError
from toolbench.engine.policy.keys import normalise_name
from toolbench.engine.policy.layered_key import merge_objects
from toolbench.engine.types import JsonObject

_DATA: JsonObject = json.loads((Path(__file__).parents[1] / "data" / "presets.json").read_text("utf-8"))

# Name of the preset, and of its layer, that all strategies except raw and wire_standard have.
INFRASTRUCTURE = "infrastructure"
STRATEGIES: tuple[str, ...] = tuple(_DATA["strategies"])

Layers = tuple[tuple[str, JsonObject], ...]
"""(name, patch) of each policy layer, lowest first."""


class UnknownPresetError(EngineError):
    """There is no preset with this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown preset: {name}")
        self.name = name


@dataclass(frozen=True, slots=True)
class PatchSet:
    """The patches of a trial, lowest layer first.

    Attributes:
        profile: patch of the sampling profile.
        preset: patch of the preset that the strategy names; empty for a built-in preset.
        run: patch of the run.
        scenario: patch of the scenario.
    """

    profile: Mapping[str, Any] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    scenario: Mapping[str, Any] = field(default_factory=dict)


def list_preset_names() -> tuple[str, ...]:
    """Return the names of the built-in presets, without aliases."""
    return tuple(_DATA["presets"])


def get_preset(name: str) -> JsonObject:
    """Return a copy of the patch of a built-in preset; the case study's aliases are accepted.

    Raises:
        UnknownPresetError: there is no such preset.
    """
    patch: JsonObject = deepcopy(_find_preset(name)["patch"])
    return patch


def get_preset_description(name: str) -> str:
    """Return a sentence on why the preset exists.

    Raises:
        UnknownPresetError: there is no such preset.
    """
    return str(_find_preset(name)["description"])


def get_provider_patch(template: str) -> JsonObject:
    """Return the patch for all models of providers with this template; {} if it has none."""
    return _merge_patches(get_preset(name) for name in _DATA["provider_defaults"].get(normalise_name(template), ()))


def has_no_defaults(strategy: str) -> bool:
    """Return whether a strategy, such as raw, has neither infrastructure nor provider defaults."""
    definition = _DATA["strategies"].get(normalise_name(strategy))
    return definition is not None and not definition["infrastructure"]


def build_openrouter_routing(
    *,
    route: str = "",
    transforms: Iterable[str] | None = None,
    only: Iterable[str] = (),
    order: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> JsonObject:
    """Return a policy patch that sets OpenRouter's choice of upstream; {} if all values are missing.

    Args:
        route: OpenRouter's option `route`; "" for none.
        transforms: OpenRouter's option `transforms`; None for none. An empty one is sent, since it turns off
            OpenRouter's own transforms.
        only: names of the upstreams that may be used; empty for any.
        order: names of the upstreams to try first, in order; empty for none.
        ignore: names of the upstreams that are not used; empty for none.
    """
    filters = {"only": list(only), "order": list(order), "ignore": list(ignore)}
    provider_filters = {key: value for key, value in filters.items() if value}
    options: JsonObject = {"route": route} if route else {}
    if transforms is not None:
        options["transforms"] = list(transforms)
    if provider_filters:
        options["provider"] = provider_filters
    return {"request_overrides": options} if options else {}


def list_model_workarounds(model_name: str) -> tuple[str, ...]:
    """Return the names of the presets that a model is known to need; () for most models.

    Args:
        model_name: the name of the model in requests.
    """
    preset_names = (
        name for rule in _DATA["model_workarounds"] if _is_rule_match(rule, model_name) for name in rule["presets"]
    )
    return tuple(dict.fromkeys(preset_names))


def build_layers(
    strategy: str, provider_template: str = "", *, workarounds: Iterable[str] = (), patches: PatchSet | None = None
) -> Layers:
    """Return name and patch of each layer, lowest first, without empty ones.

    The strategy raw has no layer of Toolbench's defaults; wire_standard has only the patch that limits calls to the
    published standards; baseline has the layers of infrastructure and provider; production also has the model's
    workarounds. Any other strategy is the preset of that name on top of baseline. If the case study published the
    preset, the defaults that were added to the infrastructure since then are turned off.

    Args:
        strategy: name of a strategy or preset.
        provider_template: name of the provider template; "" for none.
        workarounds: names of the presets that the model needs; only production uses them.
        patches: the patches of the trial; None for none.

    Raises:
        UnknownPresetError: there is no such strategy or preset and `patches.preset` is empty, or there is no such
            workaround.
    """
    patches = patches or PatchSet()
    strategy_name = normalise_name(strategy)
    is_builtin = strategy_name in _DATA["strategies"]
    definition = _DATA["strategies"][strategy_name if is_builtin else "baseline"]
    layers: list[tuple[str, Mapping[str, Any]]] = [(f"strategy {strategy_name}", definition.get("patch", {}))]
    if definition["infrastructure"]:
        layers.append((INFRASTRUCTURE, get_preset(INFRASTRUCTURE)))
    if definition["provider"]:
        layers.append((f"provider {provider_template}", get_provider_patch(provider_template)))
    if definition["workarounds"]:
        layers += [(f"workaround {name}", get_preset(name)) for name in workarounds]
    layers.append(("profile", patches.profile))
    if not is_builtin:
        layers.append(
            (
                f"preset {strategy}",
                merge_objects(_get_strategy_addition(strategy), dict(patches.preset) or get_preset(strategy)),
            )
        )
    layers += [("run", patches.run), ("scenario", patches.scenario)]
    return tuple((name, deepcopy(dict(patch))) for name, patch in layers if patch)


def list_case_study_presets() -> tuple[str, ...]:
    """Return the built-in presets that the case study published, without aliases."""
    return tuple(_DATA["case_study"]["presets"])


def _get_strategy_addition(name: str) -> JsonObject:
    """Return further settings for a preset used as the strategy; {} unless the case study published the preset.

    They turn off what Toolbench added to the infrastructure after the publication. Provider defaults and workarounds
    are presets, too, but get no further settings, so that production keeps the settings of the infrastructure.
    """
    is_published = _DATA["aliases"].get(normalise_name(name), normalise_name(name)) in list_case_study_presets()
    patch: JsonObject = _DATA["case_study"]["as_strategy"] if is_published else {}
    return patch


def _find_preset(name: str) -> JsonObject:
    canonical_name = normalise_name(name)
    preset: JsonObject | None = _DATA["presets"].get(_DATA["aliases"].get(canonical_name, canonical_name))
    if preset is None:
        raise UnknownPresetError(name)
    return preset


def _is_rule_match(rule: JsonObject, model_name: str) -> bool:
    text = str(rule["text"])
    if rule["match"] == "exact":
        return model_name == text
    return model_name.startswith(text) if rule["match"] == "prefix" else text in model_name.lower()


def _merge_patches(patches: Iterable[JsonObject]) -> JsonObject:
    """Return several patches as one.

    Lists are joined without repetitions, objects are merged at every depth, and of other values the later one wins.
    """
    merged_patch: JsonObject = {}
    for patch in patches:
        for key, value in patch.items():
            merged_value = merged_patch.get(key)
            if isinstance(value, list) and isinstance(merged_value, list):
                merged_patch[key] = list(dict.fromkeys([*merged_value, *value]))
            elif isinstance(value, dict) and isinstance(merged_value, dict):
                merged_patch[key] = merge_objects(merged_value, value)
            else:
                merged_patch[key] = value
    return merged_patch
