"""The effective policy: every setting of a trial, and the layer of each part of it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.engine.policy.layered_key import ENGINE_LAYER, OverriddenSetting
from toolbench.engine.policy.presets import STRATEGIES, Layers
from toolbench.engine.policy.settings import describe_keys, policy_to_json, resolve_policy
from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.types import Scenario
from toolbench.lab.models import Cell, Model, Preset, RunConfig, SamplingProfile
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.lookup import METHODS
from toolbench.lab.planning.policy_values import flatten_policy
from toolbench.lab.planning.run_request import ConfigChoice, LaunchError, RunRequest
from toolbench.lab.query_params import clean_text, parse_whole_number
from toolbench.lab.scenarios.catalogue import list_user_cases, load_scenario

MAX_CASES = 200  # of one's own, to choose from


@dataclass(frozen=True, slots=True)
class PolicyQuery:
    """Query of the page: a configuration that a run froze, or one that could be launched."""

    config: int | None = None
    model: int | None = None
    profile: str = "default"
    strategy: str = "production"
    method: str = "native"
    scenario: str = "happy_path"

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> "PolicyQuery":
        """Read the query string of the page."""

        def name(key: str, usual: str) -> str:
            return clean_text(query.get(key, ""), 80) or usual

        return cls(
            config=parse_whole_number(query.get("config", "")),
            model=parse_whole_number(query.get("model", "")),
            profile=name("profile", "default"),
            strategy=name("strategy", "production"),
            method=name("method", "native"),
            scenario=name("scenario", "happy_path"),
        )


@dataclass(frozen=True, slots=True)
class PolicyKeyRow:
    """One setting.

    `parts` are (value, origin): one for a plain value, one for each element or leaf of a list or object.
    """

    name: str
    doc: str
    parts: tuple[tuple[str, str], ...]
    usual: bool  # the engine's own default


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """Everything that the page shows."""

    choice: PolicyQuery
    title: str
    layers: tuple[tuple[str, str], ...]
    keys: tuple[PolicyKeyRow, ...]
    overridden: tuple[OverriddenSetting, ...]
    errors: tuple[str, ...]
    models: tuple[Model, ...]
    profiles: tuple[str, ...]
    strategies: tuple[str, ...]
    methods: tuple[str, ...]
    scenarios: tuple[str, ...]


def get_policy_page(choice: PolicyQuery) -> PolicyPage:
    """Build the page with at most twelve queries. Errors of resolving stand in `errors`; the choices stay."""
    models = tuple(Model.objects.select_related("provider"))
    title, layers, errors = _resolve_layers(choice, models)
    resolved = resolve_policy(layers) if layers else None
    return PolicyPage(
        choice=choice,
        title=title,
        layers=tuple((name, _render_json(patch)) for name, patch in layers),
        keys=_build_keys(policy_to_json(resolved.policy), resolved.origins) if resolved else (),
        overridden=resolved.overridden if resolved else (),
        errors=errors,
        models=models,
        profiles=tuple(SamplingProfile.objects.filter(archived_at=None).values_list("name", flat=True)),
        strategies=(*STRATEGIES, *Preset.objects.filter(archived_at=None).values_list("name", flat=True)),
        methods=METHODS,
        scenarios=_list_scenarios(choice.scenario),
    )


def _resolve_layers(choice: PolicyQuery, models: tuple[Model, ...]) -> tuple[str, Layers, tuple[str, ...]]:
    """Return the title, the layers, and errors that explain why there are no layers."""
    try:
        scenario = load_scenario(choice.scenario, _find_scenario_version(choice))
    except KeyError:
        return "", (), (f"There is no scenario {choice.scenario}.",)
    if choice.config is not None:
        return _get_frozen_layers(choice.config, scenario)
    model = next((model for model in models if model.pk == (choice.model or models[0].pk)), None) if models else None
    if model is None:
        return "", (), ("There is no such model: choose one." if models else "No model is known yet: connect one.",)
    config_choice = ConfigChoice(model.pk, choice.profile, choice.strategy, choice.method)
    try:
        plan = build_plan(RunRequest(configs=(config_choice,), scenarios=(choice.scenario,), trials=1))
    except LaunchError as refused:
        return str(model), (), tuple(sentence for found in refused.errors.values() for sentence in found)
    config = plan.configs[0]
    return str(config), (*config.layers, *_build_scenario_layer(scenario)), ()


def _get_frozen_layers(config_id: int, scenario: Scenario) -> tuple[str, Layers, tuple[str, ...]]:
    config = RunConfig.objects.select_related("run").filter(pk=config_id, run__deleted_at=None).first()
    if config is None:
        return "", (), (f"There is no configuration {config_id}; its run may be deleted.",)
    layers = tuple((name, patch) for name, patch in config.layers)
    return f"{config}, as frozen in run {config.run_id}", (*layers, *_build_scenario_layer(scenario)), ()


def _find_scenario_version(choice: PolicyQuery) -> int | None:
    """Return the scenario's version in the configuration; None for the newest."""
    cells = Cell.objects.filter(config_id=choice.config, scenario=choice.scenario)
    return None if choice.config is None else cells.values_list("scenario_version", flat=True).first()


def _list_scenarios(chosen: str) -> tuple[str, ...]:
    """Return code scenarios, user cases, and the scenario that is shown."""
    found = (*(scenario.slug for scenario in scenarios.list_scenarios()), *list_user_cases(MAX_CASES))
    return found if chosen in found else (*found, chosen)


def _build_scenario_layer(scenario: Scenario) -> Layers:
    layer = scenario.draw_instance(0, kind="parity").layer
    return (("scenario", layer),) if layer else ()


def _build_keys(policy: JsonObject, origins: Mapping[str, str]) -> tuple[PolicyKeyRow, ...]:
    """Return the settings, those that a layer sets first."""
    values = flatten_policy(policy)
    keys = []
    for row in describe_keys():
        parts = tuple(_iter_parts(row.name, values, origins))
        keys.append(PolicyKeyRow(row.name, row.doc, parts, all(origin == ENGINE_LAYER for _, origin in parts)))
    return tuple(sorted(keys, key=lambda key: key.usual))


def _iter_parts(name: str, values: Mapping[str, Any], origins: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, origin in origins.items():
        if key == name or key.startswith((f"{name}[", f"{name}.")):
            leaf = key.removeprefix(f"{name}.") if key.startswith(f"{name}.") else ""
            yield f"{leaf}: {_render_json(values[key])}" if leaf else _render_json(values[key]), origin


def _render_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
