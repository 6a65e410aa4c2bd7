"""A run's tool use mode and failure policy, where presets contradict them."""

from toolbench.engine.policy.presets import Layers
from toolbench.engine.policy.settings import resolve_policy

LAUNCH_LAYER, RULES_LAYER, RUN_LAYER = "launch", "rules", "run"
_RULE_KEYS = ("tool_use_mode", "tool_failure_policy")


def add_rules_layer(layers: Layers) -> Layers:
    """Add the run's settings again above presets and workarounds that contradict them, below the run's overrides.

    Tools that a preset or workaround turns off stay off.

    Raises:
        PolicyError: the layers cannot be resolved.
    """
    rest = tuple(layer for layer in layers if layer[0] != RULES_LAYER)
    place = next((at for at, (name, _) in enumerate(rest) if name == RUN_LAYER), len(rest))
    launched = [layer for layer in rest if layer[0] == LAUNCH_LAYER]
    launched_policy, below = resolve_policy(launched).policy, resolve_policy(rest[:place]).policy
    changed = {key: getattr(launched_policy, key) for key in _RULE_KEYS if any(key in patch for _, patch in launched)}
    lost = {key: value for key, value in changed.items() if getattr(below, key) not in (value, "disabled")}
    return (*rest[:place], (RULES_LAYER, lost), *rest[place:]) if lost else rest
