"""A run's frozen settings, key by key, with the layer that decided each."""

import json
from dataclasses import dataclass

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.layered_key import ENGINE_LAYER
from toolbench.engine.policy.settings import policy_to_json, resolve_policy
from toolbench.engine.tools.lint import lint_tools
from toolbench.engine.types import Finding
from toolbench.lab.models import RunConfig
from toolbench.lab.planning.policy_values import flatten_policy
from toolbench.lab.scenarios.catalogue import find_scenarios
from toolbench.lab.whole_numbers import parse_whole_number


@dataclass(frozen=True, slots=True)
class FrozenKey:
    key: str
    value: object
    origin: str

    @property
    def text(self) -> str:
        """The value as JSON; a text without its quotes."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class FrozenSettings:
    """A configuration's keys: those that some layer chose, and those at the engine's default. `scenario` names the one
    whose own rules lie on top, "" for none; `lint` is the advice on its tools."""

    config: RunConfig
    scenario: str
    chosen: tuple[FrozenKey, ...]
    defaults: tuple[FrozenKey, ...]
    lint: tuple[Finding, ...] = ()


def get_frozen_settings(run_id: int, *, config: str = "", scenario: str = "") -> FrozenSettings | None:
    """Of the configuration with that id, else of the run's first; None for a run without any. One or two queries."""
    own = RunConfig.objects.filter(run_id=run_id)
    number = parse_whole_number(config)
    named = None if number is None else own.filter(pk=number).first()
    shown = named or own.first()
    return _build_settings(shown, scenario) if shown else None


def _build_settings(config: RunConfig, scenario: str) -> FrozenSettings:
    """Layers frozen by a version that knew other keys are shown as they stand."""
    layers = [(name, patch) for name, patch in config.layers]
    if found := find_scenarios([scenario] if scenario else ()).get(scenario):
        instance = found.draw_instance(0, kind="parity")
        layers.append((f"scenario {found.slug}", instance.layer))
    lint = lint_tools(instance.tools) if found else ()
    try:
        resolved = resolve_policy(layers)
    except PolicyError:
        stored = tuple(FrozenKey(key, value, name) for name, patch in layers for key, value in patch.items())
        return FrozenSettings(config, scenario, stored, (), lint)
    values = flatten_policy(policy_to_json(resolved.policy))
    keys = [FrozenKey(key, values[key], origin) for key, origin in sorted(resolved.origins.items())]
    chosen = tuple(key for key in keys if key.origin != ENGINE_LAYER)
    return FrozenSettings(config, scenario, chosen, tuple(key for key in keys if key.origin == ENGINE_LAYER), lint)
