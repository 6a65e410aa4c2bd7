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
class FrozenSetting:
    """A setting with its value and the name of the policy layer that set it."""

    key: str
    value: object
    origin: str

    @property
    def text(self) -> str:
        """Return the value as JSON, or a string without its quotes."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class FrozenSettings:
    """Settings of a configuration, as frozen when its run started.

    Attributes:
        scenario: the scenario whose own layer is applied last; empty for none.
        chosen: keys that some layer sets.
        defaults: keys with the engine's default.
        lint: findings about the tools of the scenario.
    """

    config: RunConfig
    scenario: str
    chosen: tuple[FrozenSetting, ...]
    defaults: tuple[FrozenSetting, ...]
    lint: tuple[Finding, ...] = ()


def get_frozen_settings(run_id: int, *, config: str = "", scenario: str = "") -> FrozenSettings | None:
    """Return the settings of a configuration with one to three queries; None if there is none.

    Args:
        run_id: the run.
        scenario: scenario whose own layer is applied last; empty for none.
        config: primary key of the configuration; any other value means the first configuration of the run.
    """
    configs = RunConfig.objects.filter(run_id=run_id)
    number = parse_whole_number(config)
    requested_config = None if number is None else configs.filter(pk=number).first()
    config_row = requested_config or configs.first()
    return _build_settings(config_row, scenario) if config_row else None


def _build_settings(config: RunConfig, scenario: str) -> FrozenSettings:
    """Return the settings. Layers of a version with other keys are returned as stored, unresolved."""
    layers = [(name, patch) for name, patch in config.layers]
    if found := find_scenarios([scenario] if scenario else ()).get(scenario):
        instance = found.draw_instance(0, kind="parity")
        layers.append((f"scenario {found.slug}", instance.layer))
    lint = lint_tools(instance.tools) if found else ()
    try:
        resolved = resolve_policy(layers)
    except PolicyError:
        stored = tuple(FrozenSetting(key, value, name) for name, patch in layers for key, value in patch.items())
        return FrozenSettings(config, scenario, stored, (), lint)
    values = flatten_policy(policy_to_json(resolved.policy))
    keys = [FrozenSetting(key, values[key], origin) for key, origin in sorted(resolved.origins.items())]
    chosen = tuple(key for key in keys if key.origin != ENGINE_LAYER)
    return FrozenSettings(config, scenario, chosen, tuple(key for key in keys if key.origin == ENGINE_LAYER), lint)
