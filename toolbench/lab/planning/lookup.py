"""Lookup of the rows and scenarios that a run request names. All errors are collected and raised together."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolbench.engine.capabilities.method_choice import AUTO
from toolbench.engine.capabilities.record import EffectiveCapabilities
from toolbench.engine.policy.presets import STRATEGIES, list_preset_names
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject
from toolbench.evals.statistics.stopping import StoppingRule, StoppingRuleError
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Scenario
from toolbench.lab.endpoints.capabilities import get_capabilities_by_model
from toolbench.lab.models import Model, Preset, SamplingProfile
from toolbench.lab.planning.run_request import MAX_RUN_LIMIT, LaunchError, RunRequest
from toolbench.lab.planning.strategies import parse_strategy
from toolbench.lab.scenarios.catalogue import find_scenarios, sort_by_catalogue

METHODS = (AUTO, "native", "text_json", "template", "constrained")
MAX_RUN_TRIALS = 100_000
DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """A scenario with the data from which each of its cells is planned.

    Attributes:
        instance: its instance in the published wording.
        tools: the tools of all messages of the instance.
        version: scenario version of the instance kind that the run uses.
    """

    scenario: Scenario
    instance: Instance
    tools: tuple[ToolDefinition, ...]
    version: int


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The rows and scenarios that a request names.

    Attributes:
        models: by id, with their providers.
        profiles: all sampling profiles, by name.
        presets: patches of the user presets that the strategies or the models name, by name.
        scenarios: in the order of the catalogue.
        effective: capabilities by model id.
    """

    models: Mapping[int, Model]
    profiles: Mapping[str, SamplingProfile]
    presets: Mapping[str, JsonObject]
    scenarios: tuple[PlannedScenario, ...]
    effective: Mapping[int, EffectiveCapabilities]


def look_up_request(request: RunRequest) -> LookupResult:
    """Look up everything that a request names.

    Raises:
        LaunchError: a name is unknown or a value is invalid.
    """
    errors: dict[str, list[str]] = defaultdict(list)
    model_ids = {choice.model for choice in request.configs} or set(request.models)
    models = {model.pk: model for model in Model.objects.filter(pk__in=model_ids).select_related("provider")}
    if not model_ids:
        errors["models"].append("Choose at least one model.")
    errors["models"] += [f"There is no model {pk}." for pk in sorted(model_ids - set(models))]
    profiles = {profile.name: profile for profile in SamplingProfile.objects.all()}
    names = {choice.profile for choice in request.configs} or set(request.profiles)
    errors["profiles"] += [f"There is no profile {name}." for name in sorted(names - set(profiles) - {DEFAULT_PROFILE})]
    strategies = {choice.strategy for choice in request.configs} or set(request.strategies)
    presets = _load_user_presets(strategies, models.values())
    known_presets = {*list_preset_names(), *presets}
    errors["strategies"] += [
        f"There is no strategy or preset {unknown_name}."
        for strategy in sorted(strategies)
        for unknown_name in parse_strategy(strategy).list_unknown_names(STRATEGIES, known_presets)
    ]
    methods = {choice.method for choice in request.configs} or set(request.methods)
    errors["methods"] += [
        f"There is no method {name}: choose from {', '.join(METHODS)}." for name in sorted(methods - set(METHODS))
    ]
    scenarios = _look_up_scenarios(request, errors)
    _add_value_errors(request, errors)
    if problems := {name: sentences for name, sentences in errors.items() if sentences}:
        raise LaunchError(problems)
    planned = tuple(_draw_scenario(scenario, request.instance_kind) for scenario in scenarios)
    return LookupResult(models, profiles, presets, planned, get_capabilities_by_model(models.values()))


def _load_user_presets(strategies: Iterable[str], models: Iterable[Model]) -> Mapping[str, JsonObject]:
    """Return the patches of the user presets that the strategies or the models name, by name.

    No query is made if all names are those of strategies and built-in presets.
    """
    names = {name for strategy in strategies for name in parse_strategy(strategy).names}
    names.update(name for model in models for name in model.workarounds)
    names -= {*STRATEGIES, *list_preset_names()}
    return {row.name: row.patch for row in Preset.objects.filter(builtin=False, name__in=names)} if names else {}


def _look_up_scenarios(request: RunRequest, errors: dict[str, list[str]]) -> tuple[Scenario, ...]:
    """Return the requested scenarios in the order of the catalogue, and add an error for each unknown one."""
    scenarios = find_scenarios(request.scenarios)
    errors["scenarios"] += [f"There is no scenario {slug}." for slug in request.scenarios if slug not in scenarios]
    if not request.scenarios:
        errors["scenarios"].append("Choose at least one scenario.")
    return sort_by_catalogue(scenarios.values())


def _draw_scenario(scenario: Scenario, instance_kind: str) -> PlannedScenario:
    instance = scenario.draw_instance(0, kind=PUBLISHED_WORDING)
    tools = (*instance.tools, *(tool for message in instance.further for tool in message.tools))
    return PlannedScenario(scenario, instance, tools, scenario.draw_instance(0, kind=instance_kind).version)


def _add_value_errors(request: RunRequest, errors: dict[str, list[str]]) -> None:
    """Add an error for an invalid number of trials, stopping rule, limit, deadline or instance kind."""
    if not 1 <= request.trials <= MAX_RUN_TRIALS:
        errors["trials"].append(f"Trials per cell must be between 1 and {MAX_RUN_TRIALS}.")
    if request.until:
        try:
            StoppingRule.from_json(request.until)
        except StoppingRuleError as error:
            errors["until"].append(str(error))
    for name, limit in (("request_cap", request.request_cap), ("token_cap", request.token_cap)):
        if limit is not None and not 1 <= limit <= MAX_RUN_LIMIT:
            errors[name].append(f"A limit is a whole number from 1 to {MAX_RUN_LIMIT:,}; leave it empty for none.")
    if request.deadline_seconds is not None and not 0 < request.deadline_seconds <= 24 * 3600:
        errors["deadline_seconds"].append("The deadline of a trial must be more than 0 seconds and at most a day.")
    if request.instance_kind not in (PUBLISHED_WORDING, DRAWN):
        errors["instance_kind"].append(f"The kind of instances is either {PUBLISHED_WORDING} or {DRAWN}.")
