"""Maximum number of requests of trials, and the check that paid requests are confirmed."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from toolbench.engine.policy.layered_key import merge_options
from toolbench.engine.policy.optional_parameters import OPTIONAL_PARAMETERS
from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.evals.types import PUBLISHED_WORDING, Instance, Scenario
from toolbench.lab.models import Cell, Provider, RunConfig
from toolbench.lab.paid_requests import FREE_KINDS, check_confirmed, may_cost_money
from toolbench.lab.scenarios.catalogue import ScenarioKey, load_scenario
from toolbench.lab.sql import has_any_id


@dataclass(frozen=True, slots=True)
class FrozenCell:
    """Columns of a cell that are set at the launch and never change.

    Attributes:
        config: the configuration with its model and provider. The cells of a configuration share one object.
    """

    config: RunConfig
    scenario: str
    scenario_version: int


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


def load_frozen_cells(cell_ids: Iterable[int]) -> dict[int, FrozenCell]:
    """Return cells by id, in order, with their configurations, models and providers. The call takes two queries."""
    cells = Cell.objects.filter(has_any_id("pk", cell_ids))
    rows = list(cells.values_list("pk", "config_id", "scenario", "scenario_version"))
    configs = RunConfig.objects.select_related("provider", "model__provider").in_bulk({row[1] for row in rows})
    return {pk: FrozenCell(configs[config_id], scenario, version) for pk, config_id, scenario, version in rows}


def resolve_frozen_policies(cells: Mapping[int, FrozenCell]) -> dict[int, Policy]:
    """Resolve the frozen layers of each cell's configuration with its scenario's layer; return policies by cell id.

    Cells with equal layers share their policy, so that the cells of a large run are resolved in milliseconds.

    Raises:
        KeyError: a scenario no longer exists.
        PolicyError: the installed engine does not accept the layers.
    """
    scenario_layers = {key: instance.layer for key, (_, instance) in _draw_published_instances(cells.values()).items()}
    scenario_layers_json = {key: json.dumps(layer) for key, layer in scenario_layers.items()}
    configs = {cell.config.pk: cell.config for cell in cells.values()}
    config_layers_json = {pk: json.dumps(config.layers) for pk, config in configs.items()}
    policies_by_layers: dict[tuple[str, str], Policy] = {}
    policies = {}
    for pk, cell in cells.items():
        scenario_key = cell.scenario, cell.scenario_version
        key = config_layers_json[cell.config.pk], scenario_layers_json[scenario_key]
        if key not in policies_by_layers:
            layers = (
                *((name, patch) for name, patch in cell.config.layers),
                ("scenario", scenario_layers[scenario_key]),
            )
            policies_by_layers[key] = resolve_policy(layers).policy
        policies[pk] = policies_by_layers[key]
    return policies


def _draw_published_instances(cells: Iterable[FrozenCell]) -> dict[ScenarioKey, tuple[Scenario, Instance]]:
    """Return each cell's scenario and its instance in published wording, by slug and version.

    Raises:
        KeyError: a scenario no longer exists.
    """
    scenarios = {key: load_scenario(*key) for key in {(cell.scenario, cell.scenario_version) for cell in cells}}
    return {key: (scenario, scenario.draw_instance(0, kind=PUBLISHED_WORDING)) for key, scenario in scenarios.items()}


def check_paid_requests(
    trials: Collection[tuple[FrozenCell, Policy, int]],
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
    instances = _draw_published_instances(cell for cell, _, _ in trials)
    for cell, policy, count in trials:
        config = cell.config
        if config.provider is None or not may_cost_money(config.provider, config.model_name, config.price):
            continue
        scenario, instance = instances[cell.scenario, cell.scenario_version]
        if is_applicable(policy, scenario):
            max_requests = count_max_requests(policy, config.provider, instance, stream=config.stream)
            paid_requests[config.provider_name] += count * max_requests
    limited = {name: count if cap_left is None else min(count, cap_left) for name, count in paid_requests.items()}
    check_confirmed(Counter(limited) + Counter(probes), confirmed_requests)
