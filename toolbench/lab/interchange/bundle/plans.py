"""Plans of the trials in a bundle.

They are the stored layers of each configuration, the policy that results from them with the origin of every key, and
the prompts and tools of each scenario in one of its trials.
"""

from collections.abc import Mapping

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.settings import policy_to_json, resolve_policy
from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.bundle.selection import BundleSelection
from toolbench.lab.models import Cell, RunConfig, Trial
from toolbench.lab.scenarios.catalogue import is_version_available, load_scenario


def build_plans_json(chosen: BundleSelection) -> JsonObject:
    """Return the content of plans.json. What each trial sent is in the trial's own member."""
    firsts = Trial.objects.filter(cell__in=chosen.cells).order_by("cell_id", "position").distinct("cell_id")
    seeds = dict(firsts.values_list("cell_id", "instance_seed"))
    return {
        "simulated": chosen.run.simulated,
        "seed": chosen.run.seed,
        "order_seed": chosen.run.order_seed,
        "engine_version": chosen.run.engine_version,
        "configurations": [_config_to_json(config) for config in chosen.configs],
        "scenarios": list({cell.scenario: _scenario_to_json(chosen, cell, seeds) for cell in chosen.cells}.values()),
    }


def _config_to_json(config: RunConfig) -> JsonObject:
    """Return the layers of a configuration and the policy that results from them.

    If this engine no longer accepts the layers, the policy is null and a note says why.
    """
    frozen = {"configuration": str(config), "policy_hash": config.policy_hash, "layers": config.layers}
    try:
        resolved = resolve_policy([(name, patch) for name, patch in config.layers])
    except PolicyError as error:
        return {**frozen, "policy": None, "note": str(error)}
    return {**frozen, "policy": policy_to_json(resolved.policy), "origins": dict(resolved.origins)}


def _scenario_to_json(chosen: BundleSelection, cell: Cell, seeds: Mapping[int, int]) -> JsonObject:
    here, seed = chosen.names.get(cell.scenario, cell.scenario), seeds.get(cell.pk, 0)
    named = {"scenario": cell.scenario, "version": cell.scenario_version, "instance_kind": cell.instance_kind}
    if not is_version_available(here, cell.scenario_version):
        return {**named, "note": "This version is not known here; the requests of its trials hold prompts and tools."}
    found = load_scenario(here, cell.scenario_version)
    instance = found.draw_instance(seed, kind=cell.instance_kind)
    tools = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in instance.tools]
    drawn = {"instance_seed": seed, "system": instance.system, "user": instance.user_text, "tools": tools}
    if instance.further:
        drawn["further"] = [message.text for message in instance.further]
    return {**named, "public": found.public, **drawn, "policy_layer": instance.layer}
