"""Policy layer that restores the tool use mode and tool failure policy of a run over presets."""

from toolbench.engine.policy.presets import Layers
from toolbench.engine.policy.settings import resolve_policy

LAUNCH_LAYER, RULES_LAYER, RUN_LAYER = "launch", "rules", "run"
_RULE_KEYS = ("tool_use_mode", "tool_failure_policy")


def add_rules_layer(layers: Layers) -> Layers:
    """Return the layers, with a rules layer if presets or workarounds change the run's rules.

    The rules are the tool use mode and the tool failure policy. The rules layer sets the run's values again, below the
    run's overrides. If a preset or workaround sets the mode "disabled", that is kept. A rules layer that is already
    among the layers is replaced.

    Raises:
        PolicyError: a layer below the run's overrides is invalid.
    """
    others = tuple(layer for layer in layers if layer[0] != RULES_LAYER)
    index = next((i for i, (name, _) in enumerate(others) if name == RUN_LAYER), len(others))
    launch_layers = [layer for layer in others if layer[0] == LAUNCH_LAYER]
    launch_policy, below = resolve_policy(launch_layers).policy, resolve_policy(others[:index]).policy
    set_keys = [key for key in _RULE_KEYS if any(key in patch for _, patch in launch_layers)]
    values = {key: getattr(launch_policy, key) for key in set_keys}
    patch = {key: value for key, value in values.items() if getattr(below, key) not in (value, "disabled")}
    return (*others[:index], (RULES_LAYER, patch), *others[index:]) if patch else others
