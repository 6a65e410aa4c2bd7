import pytest

from toolbench.engine.policy.presets import get_preset
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.types import JsonObject
from toolbench.lab.planning.rules import add_rules_layer

RELAXED = ("preset default_tool_calling", get_preset("default_tool_calling"))
OFF = ("workaround tool_use_disabled", get_preset("tool_use_disabled"))
Layer = tuple[str, JsonObject]


def launched(mode: str) -> Layer:
    return "launch", {"tool_use_mode": mode, "tool_failure_policy": "fatal"}


@pytest.mark.parametrize(
    ("layers", "mode"),
    [
        ((launched("required"), RELAXED), "enforced"),
        ((launched("disabled"), RELAXED), "disabled"),
        ((launched("enforced"), OFF), "disabled"),
        ((launched("enforced"), RELAXED, ("run", {"tool_use_mode": "relaxed"})), "relaxed"),
        ((("import", {}), RELAXED), "relaxed"),
    ],
    ids=["enforced", "disabled", "switched off", "overridden", "nothing was asked for"],
)
def test_launch_settings_rank_above_presets_and_below_overrides(layers: tuple[Layer, ...], mode: str) -> None:
    ruled = add_rules_layer(layers)
    assert resolve_policy(ruled).policy.tool_use_mode == mode
    assert add_rules_layer(ruled) == ruled


def test_layers_that_say_nothing_else_stay_as_they_are() -> None:
    layers = (launched("relaxed"), RELAXED)
    assert add_rules_layer(layers) == layers
