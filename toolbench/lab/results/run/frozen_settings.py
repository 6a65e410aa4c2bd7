"""Frozen settings of a run, by key, with the policy layer that decided each."""

import json
from dataclasses import dataclass

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.layered_key import ENGINE_LAYER
from toolbench.engine.policy.settings import policy_to_json, resolve_policy
from toolbench.engine.tools.lint import lint_tools
from toolbench.engine.types import Finding
from toolbench.lab.models import RunConfig
from toolbench.lab.planning.policy_values import flatten_policy
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.scenarios.catalogue import find_scenarios


@dataclass(frozen=True, slots=True)
class FrozenKey:
    """A setting with its origin."""

    key: str
    value: object
    origin: str

    @property
    def text(self) -> str:
        """Return the value as JSON, or a string without its quotes."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class FrozenSettings:
    """Settings of a configuration.

    Attributes:
        scenario: the scenario whose own layer is applied last; empty for none.
        chosen: keys that some layer sets.
        defaults: keys with the engine's default.
        lint: findings about the tools of the scenario.
    """

    config: RunConfig
    scenario: str
    chosen: tuple[FrozenKey, ...]
    defaults: tuple[FrozenKey, ...]
    lint: tuple[Finding, ...] = ()


def get_frozen_settings(run_id: int, *, config: str = "", scenario: str = "") -> FrozenSettings | None:
    """Return the settings of a configuration with one or two queries; None for a run without configurations.

    Args:
        run_id: the run.
        scenario: scenario whose own layer is applied last; empty for none.
        config: primary key of the configuration; any other value means the first configuration of the run.
    """
    configs = RunConfig.objects.filter(run_id=run_id)
    number = parse_whole_number(config)
    named = None if number is None else configs.filter(pk=number).first()
    shown = named or configs.first()
    return _build_settings(shown, scenario) if shown else None


def _build_settings(config: RunConfig, scenario: str) -> FrozenSettings:
    """Return the settings. Layers of a version with other keys are shown as they are stored."""
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
