import pytest

from toolbench.engine.policy.presets import get_preset
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.types import JsonObject
from toolbench.lab.planning.rules import add_rules_layer

RELAXED = ("preset default_tool_calling", get_preset("default_tool_calling"))
OFF = ("workaround tool_use_disabled", get_preset("tool_use_disabled"))
Layer = tuple[str, JsonObject]


def build_launch_layer(mode: str) -> Layer:
    return "launch", {"tool_use_mode": mode, "tool_failure_policy": "fatal"}


@pytest.mark.parametrize(
    ("layers", "mode"),
    [
        ((build_launch_layer("required"), RELAXED), "enforced"),
        ((build_launch_layer("disabled"), RELAXED), "disabled"),
        ((build_launch_layer("enforced"), OFF), "disabled"),
        ((build_launch_layer("enforced"), RELAXED, ("run", {"tool_use_mode": "relaxed"})), "relaxed"),
        ((("import", {}), RELAXED), "relaxed"),
    ],
    ids=["enforced", "disabled", "switched off", "overridden", "no launch layer"],
)
def test_add_rules_layer_ranks_launch_above_presets_below_overrides(layers: tuple[Layer, ...], mode: str) -> None:
    with_rules = add_rules_layer(layers)
    assert resolve_policy(with_rules).policy.tool_use_mode == mode
    assert add_rules_layer(with_rules) == with_rules


def test_add_rules_layer_without_conflict_adds_none() -> None:
    layers = (build_launch_layer("relaxed"), RELAXED)
    assert add_rules_layer(layers) == layers
