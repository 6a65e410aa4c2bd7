"""Presets, which are named patches of the policy, and the layers of strategies.

A missing key keeps the value of the layers below; null or [] clears it.
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

_FACTS: JsonObject = json.loads((Path(__file__).parents[1] / "data" / "presets.json").read_text("utf-8"))

INFRASTRUCTURE = "infrastructure"
STRATEGIES: tuple[str, ...] = tuple(_FACTS["strategies"])

Layers = tuple[tuple[str, JsonObject], ...]


class UnknownPresetError(EngineError):
    """There is no preset with this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown preset: {name}")
        self.name = name


@dataclass(frozen=True, slots=True)
class PatchSet:
    """The patches above the strategy, lowest first.

    Attributes:
        preset: patch of the preset that the strategy names, for presets that are not built in.
    """

    profile: Mapping[str, Any] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    scenario: Mapping[str, Any] = field(default_factory=dict)


def list_preset_names() -> tuple[str, ...]:
    """Return the names of the built-in presets, without aliases."""
    return tuple(_FACTS["presets"])


def get_preset(name: str) -> JsonObject:
    """Return a copy of the patch of a built-in preset; the case study's aliases are accepted.

    Raises:
        UnknownPresetError: there is no such preset.
    """
    patch: JsonObject = deepcopy(_find_preset(name)["patch"])
    return patch


def get_preset_description(name: str) -> str:
    """Return in one sentence why the preset exists.

    Raises:
        UnknownPresetError: there is no such preset.
    """
    return str(_find_preset(name)["description"])


def get_provider_default(template: str) -> JsonObject:
    """Return the patch for all models of providers with this template; {} if it has none."""
    return _merge_patches(get_preset(name) for name in _FACTS["provider_defaults"].get(normalise_name(template), ()))


def has_no_defaults(strategy: str) -> bool:
    """Return whether a strategy uses no defaults of Toolbench, also none known for the endpoint."""
    parts = _FACTS["strategies"].get(normalise_name(strategy))
    return parts is not None and not parts["infrastructure"]


def build_openrouter_routing(
    *,
    route: str = "",
    transforms: Iterable[str] | None = None,
    only: Iterable[str] = (),
    order: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> JsonObject:
    """Return a patch that sets OpenRouter's choice of upstream.

    Missing values are not sent; an empty `transforms` is sent, since it turns OpenRouter's own off.
    """
    provider = {"only": list(only), "order": list(order), "ignore": list(ignore)}
    chosen = {key: value for key, value in provider.items() if value}
    options: JsonObject = {"route": route} if route else {}
    if transforms is not None:
        options["transforms"] = list(transforms)
    if chosen:
        options["provider"] = chosen
    return {"request_overrides": options} if options else {}


def list_model_workarounds(model_name: str) -> tuple[str, ...]:
    """Return the presets that a model is known to need, by its name in requests; empty for most."""
    found = (
        name for rule in _FACTS["model_workarounds"] if _is_rule_match(rule, model_name) for name in rule["presets"]
    )
    return tuple(dict.fromkeys(found))


def build_layers(
    strategy: str, provider_template: str = "", *, workarounds: Iterable[str] = (), wishes: PatchSet | None = None
) -> Layers:
    """Return name and patch of each layer, lowest first, without empty ones.

    raw has no defaults of Toolbench below the wishes; wire_standard reads only what the published standards allow;
    baseline adds the defaults of infrastructure and provider; production also the model's workarounds. Any other
    strategy is the preset of that name on top of baseline; a preset of the case study is used as it was published.

    Raises:
        UnknownPresetError: there is no such strategy or preset.
    """
    wishes = wishes or PatchSet()
    named = normalise_name(strategy)
    builtin = named in _FACTS["strategies"]
    parts = _FACTS["strategies"][named if builtin else "baseline"]
    layers: list[tuple[str, Mapping[str, Any]]] = [(f"strategy {named}", parts.get("patch", {}))]
    if parts["infrastructure"]:
        layers.append((INFRASTRUCTURE, get_preset(INFRASTRUCTURE)))
    if parts["provider"]:
        layers.append((f"provider {provider_template}", get_provider_default(provider_template)))
    if parts["workarounds"]:
        layers += [(f"workaround {name}", get_preset(name)) for name in workarounds]
    layers.append(("profile", wishes.profile))
    if not builtin:
        layers.append(
            (f"preset {strategy}", merge_objects(_as_strategy(strategy), dict(wishes.preset) or get_preset(strategy)))
        )
    layers += [("run", wishes.run), ("scenario", wishes.scenario)]
    return tuple((name, deepcopy(dict(patch))) for name, patch in layers if patch)


def case_study_presets() -> tuple[str, ...]:
    """Return the built-in presets that the case study published, without aliases."""
    return tuple(_FACTS["case_study"]["presets"])


def _as_strategy(name: str) -> JsonObject:
    """Return what a preset adds to its patch when it is the strategy.

    As a provider's default or a workaround it adds nothing, so that production keeps the infrastructure's settings.
    """
    published = _FACTS["aliases"].get(normalise_name(name), normalise_name(name)) in case_study_presets()
    patch: JsonObject = _FACTS["case_study"]["as_strategy"] if published else {}
    return patch


def _find_preset(name: str) -> JsonObject:
    canonical = normalise_name(name)
    found: JsonObject | None = _FACTS["presets"].get(_FACTS["aliases"].get(canonical, canonical))
    if found is None:
        raise UnknownPresetError(name)
    return found


def _is_rule_match(rule: JsonObject, model_name: str) -> bool:
    text = str(rule["text"])
    if rule["match"] == "exact":
        return model_name == text
    return model_name.startswith(text) if rule["match"] == "prefix" else text in model_name.lower()


def _merge_patches(patches: Iterable[JsonObject]) -> JsonObject:
    """Return one patch for several.

    Lists are joined without repeats, objects merged, other values replaced by later ones.
    """
    united: JsonObject = {}
    for patch in patches:
        for key, value in patch.items():
            below = united.get(key)
            if isinstance(value, list) and isinstance(below, list):
                united[key] = list(dict.fromkeys([*below, *value]))
            elif isinstance(value, dict) and isinstance(below, dict):
                united[key] = merge_objects(below, value)
            else:
                united[key] = value
    return united
