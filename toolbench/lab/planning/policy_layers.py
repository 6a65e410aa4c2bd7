"""Policy layers of a configuration, built from a run request."""

from toolbench.engine.capabilities.method_choice import AUTO
from toolbench.engine.policy.presets import Layers, PatchSet, UnknownPresetError, build_layers, get_preset
from toolbench.engine.types import JsonObject
from toolbench.lab.planning.lookup import LookupResult
from toolbench.lab.planning.rules import LAUNCH_LAYER
from toolbench.lab.planning.run_request import ConfigChoice, LaunchError, RunRequest
from toolbench.lab.planning.strategies import parse_strategy


def build_config_layers(request: RunRequest, choice: ConfigChoice, lookup: LookupResult) -> Layers:
    """Build the layers of a configuration, lowest first.

    The lowest layer, LAUNCH_LAYER, has the tool settings, method and examples of the request. If presets change its
    tool use mode or tool failure policy, `add_rules_layer` later adds a layer that restores them. The user's overrides
    are the highest layer; the scenario's layer is added later, above them.

    Raises:
        LaunchError: the strategy is production, and a workaround of the model is unknown.
    """
    model = lookup.models[choice.model]
    profile = lookup.profiles.get(choice.profile)
    strategy = parse_strategy(choice.strategy)
    workarounds = [name for name in model.workarounds if name not in strategy.removed_workarounds]
    user_workarounds = [name for name in workarounds if name in lookup.presets]
    preset_patch: JsonObject = lookup.presets.get(strategy.base, {})
    patches = PatchSet(
        profile={"llm_options_defaults": profile.options} if profile and profile.options else {},
        preset=preset_patch,
        run=request.overrides,
    )
    try:
        layers = build_layers(
            strategy.base,
            model.provider.template,
            workarounds=[name for name in workarounds if name not in user_workarounds],
            patches=patches,
        )
    except UnknownPresetError as error:
        raise LaunchError({"models": [f"{model.name} has an unknown workaround: {error.name}."]}) from error
    if model.provider.option_defaults:
        layers = (("provider options", {"llm_options_defaults": model.provider.option_defaults}), *layers)
    added_presets = [*(user_workarounds if strategy.base == "production" else ()), *strategy.added_presets]
    layers = _insert_workarounds(
        layers, tuple((f"workaround {name}", _find_preset(name, lookup)) for name in added_presets)
    )
    return ((LAUNCH_LAYER, _build_launch_patch(request, choice)), *layers)


def _find_preset(name: str, lookup: LookupResult) -> JsonObject:
    return lookup.presets[name] if name in lookup.presets else get_preset(name)


def _insert_workarounds(layers: Layers, workaround_layers: Layers) -> Layers:
    """Return the layers with the workaround layers inserted below those of profile and run."""
    index = next((i for i, (name, _) in enumerate(layers) if name in ("profile", "run")), len(layers))
    return (*layers[:index], *workaround_layers, *layers[index:])


def _build_launch_patch(request: RunRequest, choice: ConfigChoice) -> JsonObject:
    """Return the patch of LAUNCH_LAYER: tool settings, method and examples of the request."""
    patch: JsonObject = {
        "tool_use_mode": request.tool_use_mode,
        "tool_failure_policy": request.tool_failure_policy,
    }
    if choice.method != AUTO:
        patch["method"] = choice.method
    if choice.examples:
        patch["examples"] = choice.examples
    if request.tool_allowlist:
        patch["tool_allowlist"] = list(request.tool_allowlist)
    if request.tool_denylist:
        patch["tool_denylist"] = list(request.tool_denylist)
    return patch
