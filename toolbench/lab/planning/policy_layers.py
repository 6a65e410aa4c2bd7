"""The layers of one configuration, in their order."""

from toolbench.engine.capabilities.method_choice import AUTO
from toolbench.engine.policy.presets import Layers, PatchSet, UnknownPresetError, build_layers, get_preset
from toolbench.engine.types import JsonObject
from toolbench.lab.planning.lookup import LookupResult
from toolbench.lab.planning.rules import LAUNCH_LAYER
from toolbench.lab.planning.run_request import ConfigChoice, LaunchError, RunRequest
from toolbench.lab.planning.strategies import parse_strategy


def build_config_layers(request: RunRequest, choice: ConfigChoice, found: LookupResult) -> Layers:
    """Build the layers of a configuration, lowest first.

    Settings of the whole run lie below the workarounds (but see planning.rules); overrides of the user lie above all
    but the scenario.

    Raises:
        LaunchError: a preset is unknown.
    """
    model = found.models[choice.model]
    profile = found.profiles.get(choice.profile)
    words = parse_strategy(choice.strategy)
    workarounds = [name for name in model.workarounds if name not in words.removed_workarounds]
    workaround_names = [name for name in workarounds if name in found.presets]
    patch: JsonObject = found.presets.get(words.base, {})
    wishes = PatchSet(
        profile={"llm_options_defaults": profile.options} if profile and profile.options else {},
        preset=patch,
        run=request.overrides,
    )
    try:
        layers = build_layers(
            words.base,
            model.provider.template,
            workarounds=[name for name in workarounds if name not in workaround_names],
            patches=wishes,
        )
    except UnknownPresetError as error:
        raise LaunchError({"models": [f"{model.name} names a workaround nobody knows: {error.name}."]}) from error
    if model.provider.option_defaults:
        layers = (("provider options", {"llm_options_defaults": model.provider.option_defaults}), *layers)
    added = [*(workaround_names if words.base == "production" else ()), *words.added_presets]
    layers = _insert_workarounds(layers, tuple((f"workaround {name}", _find_preset(name, found)) for name in added))
    return ((LAUNCH_LAYER, _build_launch_patch(request, choice, found)), *layers)


def _find_preset(name: str, found: LookupResult) -> JsonObject:
    return found.presets[name] if name in found.presets else get_preset(name)


def _insert_workarounds(layers: Layers, workaround_layers: Layers) -> Layers:
    """Insert the user's workarounds and the presets on top of a strategy.

    They lie where built-in workarounds do: below profile, preset and run.
    """
    place = next((at for at, (name, _) in enumerate(layers) if name in ("profile", "run")), len(layers))
    return (*layers[:place], *workaround_layers, *layers[place:])


def _build_launch_patch(request: RunRequest, choice: ConfigChoice, found: LookupResult) -> JsonObject:
    model = found.models[choice.model]
    run_patch: JsonObject = {
        "tool_use_mode": request.tool_use_mode,
        "tool_failure_policy": request.tool_failure_policy,
    }
    if choice.method != AUTO:
        run_patch["method"] = choice.method
    if choice.examples:
        run_patch["examples"] = choice.examples
    known = found.effective[model.pk].capabilities
    if known.constrained:
        run_patch["constraint"] = known.constrained[0]
    if known.text_format:
        run_patch["text_format"] = known.text_format
    if request.tool_allowlist:
        run_patch["tool_allowlist"] = list(request.tool_allowlist)
    if request.tool_denylist:
        run_patch["tool_denylist"] = list(request.tool_denylist)
    return run_patch
