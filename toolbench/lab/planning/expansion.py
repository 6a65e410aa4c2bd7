"""Expansion of a run request to a plan: configurations, cells, skipped items and request counts.

Nothing is written to the database.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import product
from typing import TypeVar

from toolbench.engine.capabilities.method_choice import AUTO, MethodChoice, find_method_refusal, list_tool_problems
from toolbench.engine.capabilities.record import EffectiveCapabilities
from toolbench.engine.errors import PlanError, PolicyError
from toolbench.engine.methods.registry import build_method
from toolbench.engine.policy.layered_key import merge_options
from toolbench.engine.policy.presets import Layers
from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.evals import few_shot
from toolbench.evals.statistics.stopping import FIRST_ANALYSIS_TRIALS
from toolbench.lab.models import Model, Provider
from toolbench.lab.paid_requests import may_cost_money, needs_confirmation
from toolbench.lab.planning.auto_method import (
    add_capability_layers,
    add_routing_layer,
    build_routing,
    choose_available_method,
    needs_probe,
)
from toolbench.lab.planning.lookup import (
    DEFAULT_PROFILE,
    MAX_RUN_TRIALS,
    LookupResult,
    PlannedScenario,
    look_up_request,
)
from toolbench.lab.planning.policy_layers import build_config_layers
from toolbench.lab.planning.policy_values import hash_policy
from toolbench.lab.planning.request_bounds import count_max_requests, is_applicable
from toolbench.lab.planning.rules import add_rules_layer
from toolbench.lab.planning.run_request import (
    ConfigChoice,
    LaunchError,
    Plan,
    PlannedCell,
    PlannedConfig,
    RunRequest,
    SkippedItem,
)
from toolbench.lab.planning.strategies import parse_strategy
from toolbench.lab.planning.tool_support import build_support, find_deciding_probe
from toolbench.providers.probing.probes import MAX_FIRST_USE_REQUESTS

T = TypeVar("T")


def build_plan(request: RunRequest) -> Plan:
    """Build the plan of a request.

    Raises:
        LaunchError: the request cannot be launched.
    """
    lookup = look_up_request(request)
    choices, skipped = _list_choices(request, lookup)
    configs: list[PlannedConfig] = []
    cells: list[PlannedCell] = []
    for choice in choices:
        if error := _find_method_error(choice, lookup):
            skipped.append(SkippedItem(_describe_choice(choice, lookup), error))
            continue
        config = _plan_config(request, choice, lookup)
        if not config.method:
            skipped.append(SkippedItem(_describe_choice(choice, lookup), config.routing["reason"]))
            continue
        config_cells, skipped_cells = _plan_cells(config, len(configs), lookup)
        skipped += skipped_cells
        if config_cells:
            configs.append(config)
            cells += config_cells
        _check_size(len(cells) * request.trials)
    return _assemble_plan(request, configs, cells, skipped)


def _list_choices(request: RunRequest, lookup: LookupResult) -> tuple[list[ConfigChoice], list[SkippedItem]]:
    """Return the requested configurations, and the profiles that do not apply to a model.

    If the request has `configs`, these are returned unchanged. Otherwise, a model without any profile that applies gets
    the default profile, and a configuration that the lists name repeatedly is returned once.

    Raises:
        LaunchError: there are too many configurations.
    """
    if request.configs:
        return list(request.configs), []
    profiles, strategies = _drop_repeats(request.profiles), _drop_repeats(request.strategies)
    methods, examples = _drop_repeats(request.methods), _drop_repeats(request.examples)
    streams = _drop_repeats(request.streams)
    skipped: list[SkippedItem] = []
    choices: list[ConfigChoice] = []
    for pk in _drop_repeats(request.models):
        model = lookup.models[pk]
        applicable = [name for name in profiles if _is_profile_applicable(name, model, request, lookup)]
        skipped += [
            SkippedItem(f"{model.name} · {name}", f"The profile applies to {lookup.profiles[name].applies_to} only.")
            for name in profiles
            if name not in applicable
        ]
        lists = (applicable or [DEFAULT_PROFILE], strategies, methods, examples, streams)
        _check_size(len(choices) + math.prod(len(values) for values in lists))
        choices += [ConfigChoice(pk, *combination) for combination in product(*lists)]
    return choices, skipped


def _drop_repeats(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))


def _check_size(min_trials: int) -> None:
    """Raise LaunchError if the minimum number of trials of the run is greater than MAX_RUN_TRIALS."""
    if min_trials > MAX_RUN_TRIALS:
        sentence = (
            f"The run would have more than {MAX_RUN_TRIALS:,} trials. Choose fewer settings, scenarios or trials."
        )
        raise LaunchError({"trials": [sentence]})


def _is_profile_applicable(name: str, model: Model, request: RunRequest, lookup: LookupResult) -> bool:
    profile = lookup.profiles.get(name)
    return profile is None or not request.enforce_applicability or fnmatchcase(model.name, profile.applies_to)


def _find_method_error(choice: ConfigChoice, lookup: LookupResult) -> str:
    """Return why the method cannot be used with the model; "" if it can, and for method auto."""
    provider = lookup.models[choice.model].provider
    if choice.method == "template" and provider.wire != Provider.Wire.CHAT:
        needed_api, api = Provider.Wire.CHAT.label, Provider.Wire(provider.wire).label
        return f"The method template needs the API {needed_api}; the provider has {api}."
    if choice.method == AUTO:
        return ""
    return find_method_refusal(choice.method, lookup.effective[choice.model].capabilities)


def _describe_choice(choice: ConfigChoice, lookup: LookupResult) -> str:
    streamed = "streamed" if choice.stream else ""
    names = (choice.profile, choice.strategy, choice.method, choice.examples, streamed)
    parts = (lookup.models[choice.model].name, *names)
    return " · ".join(part for part in parts if part)


def _plan_config(request: RunRequest, choice: ConfigChoice, lookup: LookupResult) -> PlannedConfig:
    """Return the planned configuration; its method is "" if method auto finds none that is possible at the endpoint.

    Raises:
        LaunchError: the settings are invalid.
    """
    model = lookup.models[choice.model]
    profile = lookup.profiles.get(choice.profile)
    options = profile.options if profile else {}
    layers = build_config_layers(request, choice, lookup)
    effective = lookup.effective[choice.model]
    try:
        layers = add_rules_layer(layers)
        layers = add_capability_layers(layers, parse_strategy(choice.strategy).base, effective)
        chosen = _choose_config_method(choice, layers, effective)
        layers = add_routing_layer(layers, chosen) if chosen and chosen.method else layers
        policy = resolve_policy(layers).policy
        build_method(policy)
    except PolicyError as error:
        raise LaunchError(_list_policy_errors(error)) from error
    except PlanError as error:
        raise LaunchError({"methods": [str(error)]}) from error
    return PlannedConfig(
        model=model.pk,
        provider=model.provider_id,
        provider_name=model.provider.name,
        provider_kind=model.provider.kind,
        model_name=model.name,
        profile=choice.profile,
        options=options,
        strategy=choice.strategy,
        method=chosen.method if chosen else choice.method,
        examples=choice.examples,
        stream=choice.stream,
        layers=layers,
        policy_hash=hash_policy(policy),
        routing=build_routing(chosen, effective) if chosen else {},
        support=build_support(effective),
        probe=find_deciding_probe(effective),
        awaits_probe=_awaits_probe(request, choice, effective),
        may_cost=may_cost_money(model.provider, model.name, model.price),
    )


def _choose_config_method(
    choice: ConfigChoice, layers: Layers, effective: EffectiveCapabilities
) -> MethodChoice | None:
    """Return the choice of method auto; None for any other method, and if a probe is needed first."""
    if choice.method != AUTO or needs_probe(effective.capabilities):
        return None
    return choose_available_method(layers, effective)


def _awaits_probe(request: RunRequest, choice: ConfigChoice, effective: EffectiveCapabilities) -> bool:
    """Return whether the trials of the configuration wait for a probe.

    Limits of the run do not apply to probes. So if the run has a limit, a model is probed only for method auto, which
    needs the result.
    """
    has_limit = request.request_cap is not None or request.token_cap is not None
    may_probe = choice.method == AUTO or (request.probe_unknown and not has_limit)
    return may_probe and needs_probe(effective.capabilities)


def _list_policy_errors(error: PolicyError) -> dict[str, list[str]]:
    """Return a sentence for each problem, by form field."""
    errors: dict[str, list[str]] = defaultdict(list)
    for problem in error.problems:
        is_run_layer = problem.layer == "run"
        prefix = "" if is_run_layer else f"In {problem.layer}: "
        errors["overrides" if is_run_layer else "strategies"].append(f"{prefix}{problem.key}: {problem.message}.")
    return dict(errors)


def is_temperature_zero(policy: Policy) -> bool:
    """Return whether requests send temperature 0."""
    return merge_options(policy.llm_options_defaults, policy.request_overrides).get("temperature") == 0


def _plan_cells(
    config: PlannedConfig, config_index: int, lookup: LookupResult
) -> tuple[list[PlannedCell], list[SkippedItem]]:
    """Return the cells of a configuration, and the scenarios that cannot be tried with it."""
    cells: list[PlannedCell] = []
    skipped: list[SkippedItem] = []
    policies: dict[str, Policy] = {}  # by `repr` of the scenario's layer; most scenarios have the same layer
    capabilities, provider = lookup.effective[config.model].capabilities, lookup.models[config.model].provider
    sends_tools = config.method in ("native", AUTO)
    for planned in lookup.scenarios:
        scenario = planned.scenario
        if config.examples and config.examples not in few_shot.load_sets(scenario.slug):
            skipped.append(
                SkippedItem(f"{config} × {scenario.slug}", f"The scenario has no set of examples {config.examples}.")
            )
            continue
        if sends_tools and (problems := list_tool_problems(planned.tools, capabilities)):
            skipped.append(SkippedItem(f"{config} × {scenario.slug}", problems[0]))
            continue
        layer = planned.instance.layer
        if (key := repr(layer)) not in policies:
            policies[key] = resolve_policy((*config.layers, ("scenario", layer))).policy
        cells.append(_plan_cell(config, config_index, planned, policies[key], provider))
    return cells, skipped


def _plan_cell(
    config: PlannedConfig, config_index: int, planned: PlannedScenario, policy: Policy, provider: Provider
) -> PlannedCell:
    scenario, instance = planned.scenario, planned.instance
    applicable = is_applicable(policy, scenario)
    max_requests = count_max_requests(policy, provider, instance, stream=config.stream) if applicable else 0
    return PlannedCell(
        config=config_index,
        scenario=scenario.slug,
        scenario_version=planned.version,
        scenario_group=scenario.group,
        control=scenario.control,
        applicable=applicable,
        deterministic=is_temperature_zero(policy),
        least_requests=min(scenario.min_requests, max_requests),
        most_requests=max_requests,
    )


def _assemble_plan(
    request: RunRequest, configs: list[PlannedConfig], cells: list[PlannedCell], skipped: list[SkippedItem]
) -> Plan:
    """Check the plan as a whole and add up its trials and requests.

    Raises:
        LaunchError: there are no cells, or for stopping rule "best", no scenario has two applicable configurations.
    """
    if not cells:
        reasons = [f"{item.what}: {item.why}" for item in skipped]
        raise LaunchError({"models": ["No configuration can be tried with any of the scenarios.", *reasons]})
    if request.until.get("rule") == "best" and max(count_applicable_cells(cells).values(), default=0) < 2:
        raise LaunchError({"until": ["Finding the best needs at least two configurations: choose another one."]})
    first_trials = count_initial_repeats(request)
    limit = request.request_cap if request.request_cap is not None else 2**62  # more than any plan sends
    paid_requests: dict[str, int] = defaultdict(int)
    for name, max_requests in _iter_paid_requests(configs, cells):
        paid_requests[name] = min(limit, paid_requests[name] + max_requests * request.trials)
    for name in _list_paid_probes(configs):
        paid_requests[name] += MAX_FIRST_USE_REQUESTS
    return Plan(
        configs=tuple(configs),
        cells=tuple(cells),
        skipped=tuple(skipped),
        trials=len(cells) * request.trials,
        least_trials=len(cells) * first_trials,
        least_requests=min(limit, first_trials * sum(cell.least_requests for cell in cells)),
        most_requests=min(limit, request.trials * sum(cell.most_requests for cell in cells)),
        paid_requests=dict(paid_requests),
        needs_confirmation=needs_confirmation(paid_requests),
    )


def count_initial_repeats(request: RunRequest) -> int:
    """Return how many trials of each cell a launch queues: all, or the first round of sequential stopping."""
    return min(FIRST_ANALYSIS_TRIALS, request.trials) if request.until else request.trials


def count_applicable_cells(cells: Sequence[PlannedCell]) -> Counter[str]:
    """Count the applicable cells of each scenario, by slug."""
    return Counter(cell.scenario for cell in cells if cell.applicable)


def _list_paid_probes(configs: list[PlannedConfig]) -> list[str]:
    """Return the provider name of each model that has to be probed and may cost money; names may repeat."""
    configs_by_model = {config.model: config for config in configs if config.awaits_probe}
    return [config.provider_name for config in configs_by_model.values() if config.may_cost]


def _iter_paid_requests(configs: list[PlannedConfig], cells: list[PlannedCell]) -> Iterator[tuple[str, int]]:
    """Yield the provider name and the maximum requests of one trial, for each cell that may cost money."""
    for cell in cells:
        config = configs[cell.config]
        if config.may_cost:
            yield config.provider_name, cell.most_requests
