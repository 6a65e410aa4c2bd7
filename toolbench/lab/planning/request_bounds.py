"""Maximum number of requests of trials, and the check that paid requests are confirmed."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from django.db.models import Prefetch

from toolbench.engine.policy.layered_key import merge_options
from toolbench.engine.policy.optional_parameters import OPTIONAL_PARAMETERS
from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.evals.types import PUBLISHED_WORDING, Instance, Scenario
from toolbench.lab.models import Cell, Provider, RunConfig
from toolbench.lab.paid_requests import FREE_KINDS, check_confirmed, may_cost_money
from toolbench.lab.scenarios.catalogue import load_scenario
from toolbench.lab.sql import has_any_id

# Columns of a cell that `load_frozen_cells` reads. They are set at the launch and never change.
_PLANNED_COLUMNS = frozenset({"id", "run", "config", "scenario", "scenario_version", "position"})


def count_max_requests(policy: Policy, provider: Provider, instance: Instance, *, stream: bool) -> int:
    """Return the maximum number of requests of one trial.

    Every turn of each user message and every attempt of each request are assumed to be used. If the policy repeats a
    turn without tools after the endpoint refused them, a repetition of every turn is assumed. If the policy repeats a
    request without a parameter that the endpoint refused, one repetition for each optional parameter is assumed.
    """
    requests_per_turn = 2 if policy.tool_use_mode == "relaxed" and policy.fallback_retry_count else 1
    optional_count = len(_list_optional_parameters(policy, provider, instance, stream=stream))
    turns = (1 + len(instance.further)) * policy.max_turns * requests_per_turn
    omission_retries = optional_count if policy.drop_refused_parameters else 0
    return (turns + omission_retries) * max(provider.max_attempts, policy.cut_stream_retries + 1)


def _list_optional_parameters(
    policy: Policy, provider: Provider, instance: Instance, *, stream: bool
) -> frozenset[str]:
    """Return the optional parameters that requests of a trial may contain."""
    sent = set(merge_options(policy.llm_options_defaults, policy.request_overrides))
    if policy.method == "native" and (instance.tools or any(message.tools for message in instance.further)):
        sent.add("tool_choice")
    else:
        sent.discard("parallel_tool_calls")  # only sent with tools
    if provider.kind in FREE_KINDS:
        sent.add("seed")
    if stream:
        sent.add("stream_options")
    return frozenset((sent & OPTIONAL_PARAMETERS.keys()) - set(policy.left_out_parameters))


def is_applicable(policy: Policy, scenario: Scenario) -> bool:
    """Return whether the scenario applies: in the tool use mode "disabled", only control scenarios do."""
    return scenario.control or policy.tool_use_mode != "disabled"


def load_frozen_cells(cell_ids: Iterable[int]) -> dict[int, Cell]:
    """Return cells by id, with their configurations, models and providers. The call takes at most two queries.

    Columns of figures are not loaded. The cells of a configuration share one RunConfig object, so that its layers are
    parsed once.
    """
    configs = RunConfig.objects.select_related("provider", "model__provider")
    cells = Cell.objects.only(*_PLANNED_COLUMNS).prefetch_related(Prefetch("config", configs))
    return {cell.pk: cell for cell in cells.filter(has_any_id("pk", cell_ids))}


def resolve_frozen_policies(cells: Iterable[Cell]) -> dict[int, Policy]:
    """Resolve the frozen layers of each cell's configuration with its scenario's layer; return policies by cell id.

    Cells with equal layers share their policy, so that the cells of a large run are resolved in milliseconds.

    Raises:
        KeyError: a scenario no longer exists.
        PolicyError: the installed engine does not accept the layers.
    """
    cells = tuple(cells)
    instances = _draw_published_instances(cells)
    layers_by_config = {cell.config_id: cell.config.layers for cell in cells}
    layers_json_by_config = {config_id: json.dumps(layers) for config_id, layers in layers_by_config.items()}
    policies_by_layers: dict[tuple[str, str], Policy] = {}
    policies = {}
    for cell in cells:
        scenario_layer = instances[cell.scenario, cell.scenario_version].layer
        key = layers_json_by_config[cell.config_id], json.dumps(scenario_layer)
        if key not in policies_by_layers:
            layers = (*((name, patch) for name, patch in cell.config.layers), ("scenario", scenario_layer))
            policies_by_layers[key] = resolve_policy(layers).policy
        policies[cell.pk] = policies_by_layers[key]
    return policies


def _draw_published_instances(cells: Iterable[Cell]) -> dict[tuple[str, int], Instance]:
    """Return the instance in published wording of each cell's scenario, by slug and version.

    Raises:
        KeyError: a scenario no longer exists.
    """
    versions = {(cell.scenario, cell.scenario_version) for cell in cells}
    return {
        (slug, version): load_scenario(slug, version).draw_instance(0, kind=PUBLISHED_WORDING)
        for slug, version in versions
    }


def check_paid_requests(
    trials: Iterable[tuple[Cell, Policy, int]],
    *,
    cap_left: int | None,
    confirmed_requests: int,
    probes: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Check that the paid requests that trials and probes may send need no confirmation or were confirmed.

    Args:
        trials: cells with their policies and numbers of trials.
        cap_left: requests that the run's limit still allows; None without a limit.
        confirmed_requests: the confirmed number of paid requests.
        probes: paid requests of probes by provider name; the run's limit does not apply to them.

    Raises:
        PaidRequestsUnconfirmedError: confirmation is needed, and more paid requests may be sent than were confirmed.
    """
    paid_requests: dict[str, int] = defaultdict(int)
    trials = tuple(trials)
    instances = _draw_published_instances(cell for cell, _, _ in trials)
    for cell, policy, count in trials:
        config = cell.config
        if config.provider is None or not may_cost_money(config.provider, config.model_name, config.price):
            continue
        if is_applicable(policy, load_scenario(cell.scenario, cell.scenario_version)):
            instance = instances[cell.scenario, cell.scenario_version]
            max_requests = count_max_requests(policy, config.provider, instance, stream=config.stream)
            paid_requests[config.provider_name] += count * max_requests
    limited = {name: count if cap_left is None else min(count, cap_left) for name, count in paid_requests.items()}
    check_confirmed(Counter(limited) + Counter(probes), confirmed_requests)
