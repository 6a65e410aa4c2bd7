"""The most requests that trials may send, and confirmation before many paid ones."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from toolbench.engine.capabilities.method_choice import AUTO
from toolbench.engine.policy.layered_key import merge_options
from toolbench.engine.policy.optional_parameters import OPTIONAL_PARAMETERS
from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.evals.types import Instance, Scenario
from toolbench.lab.confirmation import FREE_KINDS, check_confirmed, may_cost_money
from toolbench.lab.models import Cell, Provider
from toolbench.lab.scenarios.catalogue import load_scenario


def count_max_requests(policy: Policy, provider: Provider, instance: Instance, *, stream: bool) -> int:
    """Return the most requests of one trial.

    Every turn of each user message is used. Every turn is repeated without tools where the policy allows it. Every
    optional parameter is refused once where the policy then asks without it. Every request is sent as often as allowed.
    """
    requests_per_turn = 2 if policy.tool_use_mode == "relaxed" and policy.fallback_retry_count else 1
    refused = len(_list_optional_parameters(policy, provider, instance, stream=stream))
    turns = (1 + len(instance.further)) * policy.max_turns * requests_per_turn
    again = refused if policy.drop_refused_parameters else 0
    return (turns + again) * max(provider.max_attempts, policy.cut_stream_retries + 1)


def _list_optional_parameters(
    policy: Policy, provider: Provider, instance: Instance, *, stream: bool
) -> frozenset[str]:
    """Return the optional parameters that requests of a trial may carry."""
    sent = set(merge_options(policy.llm_options_defaults, policy.request_overrides))
    if policy.method in ("native", AUTO) and (instance.tools or any(message.tools for message in instance.further)):
        sent.add("tool_choice")
    else:
        sent.discard("parallel_tool_calls")  # never sent without tools
    if provider.kind in FREE_KINDS:
        sent.add("seed")
    if stream:
        sent.add("stream_options")
    return frozenset((sent & OPTIONAL_PARAMETERS.keys()) - set(policy.left_out_parameters))


def is_applicable(policy: Policy, scenario: Scenario) -> bool:
    """Return whether the scenario can be tried: with tools off, one about tools says nothing about the model."""
    return scenario.control or policy.tool_use_mode != "disabled"


def resolve_frozen_policy(cell: Cell) -> Policy:
    """Resolve the policy that the run froze, with the scenario's layer.

    Raises:
        PolicyError: this engine does not accept it any more.
    """
    layer = load_scenario(cell.scenario, cell.scenario_version).draw_instance(0, kind="parity").layer
    return resolve_policy((*((name, patch) for name, patch in cell.config.layers), ("scenario", layer))).policy


def check_paid_requests(
    trials: Iterable[tuple[Cell, Policy, int]],
    *,
    cap_left: int | None,
    agreed: int,
    probes: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Confirm the most requests that these trials may send, as `check_confirmed` does.

    `cap_left` are the requests that the run's limit still allows, None without a limit. `probes` are the paid requests
    of probes by the provider's name; no limit counts them.
    """
    paid: dict[str, int] = defaultdict(int)
    for cell, policy, count in trials:
        config = cell.config
        if config.provider is None or not may_cost_money(config.provider, config.model_name, config.price):
            continue
        scenario = load_scenario(cell.scenario, cell.scenario_version)
        if is_applicable(policy, scenario):
            instance = scenario.draw_instance(0, kind="parity")
            most = count_max_requests(policy, config.provider, instance, stream=config.stream)
            paid[config.provider_name] += count * most
    capped = {name: count if cap_left is None else min(count, cap_left) for name, count in paid.items()}
    check_confirmed(Counter(capped) + Counter(probes), agreed)
