"""Settings of a run's configuration, each with its origin: the policy layer that set it."""

import json
from dataclasses import dataclass

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.layered_key import ENGINE_LAYER
from toolbench.engine.policy.settings import build_policy_json, resolve_policy
from toolbench.engine.tools.lint import lint_tools
from toolbench.engine.types import Finding
from toolbench.evals.types import PUBLISHED_WORDING
from toolbench.lab.models import RunConfig
from toolbench.lab.planning.policy_values import flatten_policy
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.scenarios.catalogue import find_scenarios


@dataclass(frozen=True, slots=True)
class FrozenSetting:
    """Setting with its value and its origin: the name of the policy layer that set it."""

    key: str
    value: object
    origin: str

    @property
    def text(self) -> str:
        """Return the value as text: a string unchanged, anything else as JSON."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class FrozenSettings:
    """Settings of a configuration, resolved from its stored layers.

    If a scenario is chosen, the layer of its current version is applied last.

    Attributes:
        scenario: slug of that scenario; empty for none. The layer of an unknown scenario is left out.
        chosen: settings whose origin is not the engine's layer; if the layers cannot be resolved, all their entries.
        defaults: settings whose origin is the engine's layer.
        lint: findings about the tools of the scenario; empty without a scenario.
    """

    config: RunConfig
    scenario: str
    chosen: tuple[FrozenSetting, ...]
    defaults: tuple[FrozenSetting, ...]
    lint: tuple[Finding, ...] = ()


def get_frozen_settings(run_id: int, *, config: str = "", scenario: str = "") -> FrozenSettings | None:
    """Return the settings of a configuration; None for a run without configurations.

    The function sends one to three queries.

    Args:
        run_id: primary key of the run.
        config: primary key of the configuration; if the run has no such configuration, its first one is used.
        scenario: slug of the scenario whose layer is applied last; empty for none.
    """
    configs = RunConfig.objects.filter(run_id=run_id)
    number = parse_whole_number(config)
    requested_config = None if number is None else configs.filter(pk=number).first()
    config_row = requested_config or configs.first()
    return _build_settings(config_row, scenario) if config_row else None


def _build_settings(config: RunConfig, scenario: str) -> FrozenSettings:
    """Return the resolved settings; if the layers cannot be resolved, return all their entries as `chosen`."""
    layers = [(name, patch) for name, patch in config.layers]
    lint: tuple[Finding, ...] = ()
    if loaded_scenario := find_scenarios([scenario] if scenario else ()).get(scenario):
        # The published wording with a fixed seed, so that the page does not change between visits.
        instance = loaded_scenario.draw_instance(0, kind=PUBLISHED_WORDING)
        layers.append((f"scenario {loaded_scenario.slug}", instance.layer))
        lint = lint_tools(instance.tools)
    try:
        resolved = resolve_policy(layers)
    except PolicyError:
        stored = tuple(FrozenSetting(key, value, name) for name, patch in layers for key, value in patch.items())
        return FrozenSettings(config, scenario, stored, (), lint)
    values = flatten_policy(build_policy_json(resolved.policy))
    settings = [FrozenSetting(key, values[key], origin) for key, origin in sorted(resolved.origins.items())]
    chosen = tuple(setting for setting in settings if setting.origin != ENGINE_LAYER)
    defaults = tuple(setting for setting in settings if setting.origin == ENGINE_LAYER)
    return FrozenSettings(config, scenario, chosen, defaults, lint)
