"""Data of the policy page: every setting of a configuration with the layer that sets it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.layered_key import ENGINE_LAYER, OverriddenSetting
from toolbench.engine.policy.presets import STRATEGIES, Layers
from toolbench.engine.policy.settings import build_policy_json, describe_keys, resolve_policy
from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.types import PUBLISHED_WORDING, Scenario
from toolbench.lab.models import Cell, Model, Preset, RunConfig, SamplingProfile
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.lookup import METHODS
from toolbench.lab.planning.policy_values import flatten_policy
from toolbench.lab.planning.run_request import ConfigChoice, LaunchError, RunRequest
from toolbench.lab.query_params import clean_text, parse_whole_number
from toolbench.lab.scenarios.catalogue import list_user_case_slugs, load_scenario

MAX_CASES = 200  # maximum number of users' test cases among the scenarios of the form


@dataclass(frozen=True, slots=True)
class PolicyQuery:
    """Query of the policy page.

    Attributes:
        config: id of a configuration of a run; None for a configuration that could be launched, which the other fields
            describe.
        model: id of the model; None for the first model.
        scenario: slug of the scenario whose layer is added, also to a configuration of a run.
    """

    config: int | None = None
    model: int | None = None
    profile: str = "default"
    strategy: str = "production"
    method: str = "native"
    scenario: str = "happy_path"

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> "PolicyQuery":
        """Read the query from URL parameters; a missing or unreadable one gets its default."""

        def parse_name(key: str, default: str) -> str:
            return clean_text(query.get(key, ""), 80) or default

        return cls(
            config=parse_whole_number(query.get("config", "")),
            model=parse_whole_number(query.get("model", "")),
            profile=parse_name("profile", "default"),
            strategy=parse_name("strategy", "production"),
            method=parse_name("method", "native"),
            scenario=parse_name("scenario", "happy_path"),
        )


@dataclass(frozen=True, slots=True)
class PolicyKeyRow:
    """A setting with the layers that set it.

    Attributes:
        parts: pairs of a value as JSON and the name of the layer that sets it, or ENGINE_LAYER for a default. A joined
            list has a pair for each element, an object one for each leaf, such as `seed: 7`, any other value one pair.
        is_default: whether no layer sets a part of the value.
    """

    name: str
    doc: str
    parts: tuple[tuple[str, str], ...]
    is_default: bool


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """Data of the policy page.

    Attributes:
        title: name of the configuration, or of the model if the configuration cannot be launched; "" if neither is
            known.
        layers: names of the layers with their patches as JSON, lowest first.
        keys: the settings; those that a layer sets come first. Empty if there are errors.
        overridden: values that a higher layer replaced.
        errors: why there are no layers, or why the engine does not accept them.
        models: options of the form, as are the fields after it.
    """

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
    """Return the data of the page, with at most twelve queries."""
    models = tuple(Model.objects.select_related("provider"))
    title, layers, errors = _resolve_layers(choice, models)
    resolved = None
    try:
        resolved = resolve_policy(layers) if layers else None
    except PolicyError as error:  # layers that another version of the engine froze
        errors = tuple(f"In {problem.layer}: {problem.key}: {problem.message}." for problem in error.problems)
    return PolicyPage(
        choice=choice,
        title=title,
        layers=tuple((name, _render_json(patch)) for name, patch in layers),
        keys=_build_keys(build_policy_json(resolved.policy), resolved.origins) if resolved else (),
        overridden=resolved.overridden if resolved else (),
        errors=errors,
        models=models,
        profiles=tuple(SamplingProfile.objects.filter(archived_at=None).values_list("name", flat=True)),
        strategies=(*STRATEGIES, *Preset.objects.filter(archived_at=None).values_list("name", flat=True)),
        methods=METHODS,
        scenarios=_list_scenarios(choice.scenario),
    )


def _resolve_layers(choice: PolicyQuery, models: tuple[Model, ...]) -> tuple[str, Layers, tuple[str, ...]]:
    """Return the title, the layers lowest first, and the errors if there are no layers."""
    try:
        scenario = load_scenario(choice.scenario, _find_scenario_version(choice))
    except KeyError:
        return "", (), (f"There is no scenario {choice.scenario}.",)
    if choice.config is not None:
        return _get_frozen_layers(choice.config, scenario)
    if not models:
        return "", (), ("There is no model yet: connect a provider.",)
    model_id = choice.model or models[0].pk
    model = next((model for model in models if model.pk == model_id), None)
    if model is None:
        return "", (), (f"There is no model {model_id}: choose one.",)
    config_choice = ConfigChoice(model.pk, choice.profile, choice.strategy, choice.method)
    try:
        plan = build_plan(RunRequest(configs=(config_choice,), scenarios=(choice.scenario,), trials=1))
    except LaunchError as error:
        return str(model), (), tuple(sentence for sentences in error.errors.values() for sentence in sentences)
    config = plan.configs[0]
    return str(config), (*config.layers, *_build_scenario_layer(scenario)), ()


def _get_frozen_layers(config_id: int, scenario: Scenario) -> tuple[str, Layers, tuple[str, ...]]:
    config = RunConfig.objects.select_related("run").filter(pk=config_id, run__deleted_at=None).first()
    if config is None:
        return "", (), (f"There is no configuration {config_id}; its run may be deleted.",)
    layers = tuple((name, patch) for name, patch in config.layers)
    return f"{config}, as frozen in run {config.run_id}", (*layers, *_build_scenario_layer(scenario)), ()


def _find_scenario_version(choice: PolicyQuery) -> int | None:
    """Return the version of the chosen scenario that the chosen configuration of a run tried.

    Returns:
        None if no configuration of a run is chosen, or if it did not try the scenario.
    """
    cells = Cell.objects.filter(config_id=choice.config, scenario=choice.scenario)
    return None if choice.config is None else cells.values_list("scenario_version", flat=True).first()


def _list_scenarios(chosen: str) -> tuple[str, ...]:
    """Return the slugs of the scenarios in code, those of up to MAX_CASES test cases, and the chosen slug."""
    slugs = (*(scenario.slug for scenario in scenarios.list_scenarios()), *list_user_case_slugs(MAX_CASES))
    return slugs if chosen in slugs else (*slugs, chosen)


def _build_scenario_layer(scenario: Scenario) -> Layers:
    layer = scenario.draw_instance(0, kind=PUBLISHED_WORDING).layer
    return (("scenario", layer),) if layer else ()


def _build_keys(policy: JsonObject, origins: Mapping[str, str]) -> tuple[PolicyKeyRow, ...]:
    """Return the settings; those that a layer sets come first."""
    values = flatten_policy(policy)
    keys = []
    for row in describe_keys():
        parts = tuple(_iter_parts(row.name, values, origins))
        keys.append(PolicyKeyRow(row.name, row.doc, parts, all(origin == ENGINE_LAYER for _, origin in parts)))
    return tuple(sorted(keys, key=lambda key: key.is_default))


def _iter_parts(name: str, values: Mapping[str, Any], origins: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the `parts` of a PolicyKeyRow."""
    for key, origin in origins.items():
        if key == name or key.startswith((f"{name}[", f"{name}.")):
            leaf = key.removeprefix(f"{name}.") if key.startswith(f"{name}.") else ""
            yield f"{leaf}: {_render_json(values[key])}" if leaf else _render_json(values[key]), origin


def _render_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
