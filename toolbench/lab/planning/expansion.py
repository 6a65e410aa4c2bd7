"""Expand a request to a plan: configurations, cells, omitted items with reasons, and costs. Nothing is written."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import product

from toolbench.engine.capabilities.method_choice import AUTO, MethodChoice, find_method_refusal, list_tool_problems
from toolbench.engine.capabilities.record import EffectiveCapabilities
from toolbench.engine.errors import PlanError, PolicyError
from toolbench.engine.methods.registry import build_method
from toolbench.engine.policy.layered_key import merge_options
from toolbench.engine.policy.presets import Layers
from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.evals import few_shot
from toolbench.evals.statistics.stopping import FIRST_ANALYSIS_TRIALS
from toolbench.evals.types import Scenario
from toolbench.lab.confirmation import may_cost_money, needs_confirmation
from toolbench.lab.models import Model, Provider
from toolbench.lab.planning.auto_method import (
    add_capability_layers,
    add_routing_layer,
    build_routing,
    choose_available_method,
    needs_probe,
)
from toolbench.lab.planning.lookup import DEFAULT_PROFILE, MAX_RUN_TRIALS, LookupResult, look_up_request
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


def build_plan(request: RunRequest) -> Plan:
    """Build the plan of a request.

    Raises:
        LaunchError: the request cannot be launched; plain sentences by field.
    """
    found = look_up_request(request)
    choices, skipped = _list_choices(request, found)
    configs: list[PlannedConfig] = []
    cells: list[PlannedCell] = []
    for choice in choices:
        if why := _find_method_error(choice, found):
            skipped.append(SkippedItem(_describe_choice(choice, found), why))
            continue
        config = _plan_config(request, choice, found)
        if not config.method:
            skipped.append(SkippedItem(_describe_choice(choice, found), config.routing["reason"]))
            continue
        kept, left_out = _plan_cells(request, config, len(configs), found)
        skipped += left_out
        if kept:
            configs.append(config)
            cells += kept
    return _assemble_plan(request, configs, cells, skipped)


def _list_choices(request: RunRequest, found: LookupResult) -> tuple[list[ConfigChoice], list[SkippedItem]]:
    """Return every requested configuration without profiles that do not apply; a model without any gets the default."""
    if request.configs:
        return list(request.configs), []
    skipped: list[SkippedItem] = []
    choices: list[ConfigChoice] = []
    for pk in request.models:
        model = found.models[pk]
        fitting = [name for name in request.profiles if _is_profile_applicable(name, model, request, found)]
        skipped += [
            SkippedItem(f"{model.name} · {name}", f"The profile applies to {found.profiles[name].applies_to} only.")
            for name in request.profiles
            if name not in fitting
        ]
        profiles = fitting or [DEFAULT_PROFILE]
        combinations = product(profiles, request.strategies, request.methods, request.examples, request.streams)
        choices += [ConfigChoice(pk, *combination) for combination in combinations]
    return choices, skipped


def _is_profile_applicable(name: str, model: Model, request: RunRequest, found: LookupResult) -> bool:
    profile = found.profiles.get(name)
    return profile is None or not request.enforce_applicability or fnmatchcase(model.name, profile.applies_to)


def _find_method_error(choice: ConfigChoice, found: LookupResult) -> str:
    """Return why a named method cannot be used here, "" if it can."""
    wire = found.models[choice.model].provider.wire
    if choice.method == "template" and wire != Provider.Wire.CHAT:
        return f"An endpoint that speaks {wire} takes no rendered prompt."
    return (
        "" if choice.method == AUTO else find_method_refusal(choice.method, found.effective[choice.model].capabilities)
    )


def _describe_choice(choice: ConfigChoice, found: LookupResult) -> str:
    parts = (found.models[choice.model].name, choice.profile, choice.strategy, choice.method, choice.examples)
    return " · ".join(part for part in parts if part)


def _plan_config(request: RunRequest, choice: ConfigChoice, found: LookupResult) -> PlannedConfig:
    model = found.models[choice.model]
    profile = found.profiles.get(choice.profile)
    options = profile.options if profile else {}
    layers = build_config_layers(request, choice, found)
    effective = found.effective[choice.model]
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
    """Return the choice of method `auto`; None for a named method, and while a probe is needed."""
    if choice.method != AUTO or needs_probe(effective.capabilities):
        return None
    return choose_available_method(layers, effective)


def _awaits_probe(request: RunRequest, choice: ConfigChoice, effective: EffectiveCapabilities) -> bool:
    """Return whether the configuration waits for a probe.

    A run with a request limit sends no more than the limit, and no limit counts a probe; but `auto` needs one.
    """
    capped = request.request_cap is not None or request.token_cap is not None
    would_probe = choice.method == AUTO or (request.probe_unknown and not capped)
    return would_probe and needs_probe(effective.capabilities)


def _list_policy_errors(error: PolicyError) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = defaultdict(list)
    for problem in error.problems:
        is_run_layer = problem.layer == "run"
        where = "" if is_run_layer else f"In {problem.layer}: "
        errors["overrides" if is_run_layer else "strategies"].append(f"{where}{problem.key}: {problem.message}.")
    return dict(errors)


def is_temperature_zero(policy: Policy) -> bool:
    """Return whether the temperature that is sent is 0, whichever layer sets it."""
    return merge_options(policy.llm_options_defaults, policy.request_overrides).get("temperature") == 0


def _plan_cells(
    request: RunRequest, config: PlannedConfig, place: int, found: LookupResult
) -> tuple[list[PlannedCell], list[SkippedItem]]:
    kept: list[PlannedCell] = []
    skipped: list[SkippedItem] = []
    for scenario in found.scenarios:
        if config.examples and config.examples not in few_shot.load_sets(scenario.slug):
            skipped.append(
                SkippedItem(f"{config} × {scenario.slug}", f"The scenario has no examples {config.examples}.")
            )
            continue
        instance = scenario.draw_instance(0, kind="parity")
        tools = (*instance.tools, *(tool for message in instance.further for tool in message.tools))
        troubles = list_tool_problems(tools, found.effective[config.model].capabilities)
        if troubles and config.method in ("native", AUTO):
            skipped.append(SkippedItem(f"{config} × {scenario.slug}", troubles[0]))
            continue
        kept.append(_plan_cell(request, config, place, scenario, found))
    return kept, skipped


def _plan_cell(
    request: RunRequest, config: PlannedConfig, place: int, scenario: Scenario, found: LookupResult
) -> PlannedCell:
    instance = scenario.draw_instance(0, kind="parity")
    policy = resolve_policy((*config.layers, ("scenario", instance.layer))).policy
    applicable = is_applicable(policy, scenario)
    provider = found.models[config.model].provider
    most = count_max_requests(policy, provider, instance, stream=config.stream) if applicable else 0
    return PlannedCell(
        config=place,
        scenario=scenario.slug,
        scenario_version=scenario.draw_instance(0, kind=request.instance_kind).version,
        scenario_group=scenario.group,
        control=scenario.control,
        applicable=applicable,
        deterministic=is_temperature_zero(policy),
        least_requests=min(scenario.straight_requests, most),
        most_requests=most,
    )


def _assemble_plan(
    request: RunRequest, configs: list[PlannedConfig], cells: list[PlannedCell], skipped: list[SkippedItem]
) -> Plan:
    trials = len(cells) * request.trials
    if trials > MAX_RUN_TRIALS:
        raise LaunchError({"trials": [f"This would be {trials} trials; a run has at most {MAX_RUN_TRIALS}."]})
    if not cells:
        raise LaunchError({"models": ["Nothing is left to try.", *(f"{item.what}: {item.why}" for item in skipped)]})
    if request.until.get("rule") == "best" and max(count_competitors(cells).values(), default=0) < 2:
        raise LaunchError({"until": ["The best of one is known already: choose a second configuration."]})
    least = count_first_blocks(request)
    cap = request.request_cap if request.request_cap is not None else 2**62
    paid: dict[str, int] = defaultdict(int)
    for name, most in _iter_paid_requests(configs, cells):
        paid[name] = min(cap, paid[name] + most * request.trials)
    for name in _list_paid_probes(configs):
        paid[name] += MAX_FIRST_USE_REQUESTS
    return Plan(
        configs=tuple(configs),
        cells=tuple(cells),
        skipped=tuple(skipped),
        trials=trials,
        least_trials=len(cells) * least,
        least_requests=min(cap, least * sum(cell.least_requests for cell in cells)),
        most_requests=min(cap, request.trials * sum(cell.most_requests for cell in cells)),
        paid_requests=dict(paid),
        needs_confirmation=needs_confirmation(paid),
    )


def count_first_blocks(request: RunRequest) -> int:
    """Return how many trials of every cell are queued at once."""
    return min(FIRST_ANALYSIS_TRIALS, request.trials) if request.until else request.trials


def count_competitors(cells: Sequence[PlannedCell]) -> Counter[str]:
    """Count the cells of each scenario that can be decided."""
    return Counter(cell.scenario for cell in cells if cell.applicable)


def _list_paid_probes(configs: list[PlannedConfig]) -> list[str]:
    """Return the provider's name for every model whose probe costs money; no limit of the run counts its requests."""
    waiting = {config.model: config for config in configs if config.awaits_probe}
    return [config.provider_name for config in waiting.values() if config.may_cost]


def _iter_paid_requests(configs: list[PlannedConfig], cells: list[PlannedCell]) -> Iterator[tuple[str, int]]:
    for cell in cells:
        config = configs[cell.config]
        if config.may_cost:
            yield config.provider_name, cell.most_requests
