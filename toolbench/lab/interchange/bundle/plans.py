"""Content of plans.json: the plans of the trials in a bundle.

It has each configuration's stored layers and the policy that results from them with the origin of every key, and each
scenario's prompts and tools, as drawn for one of its trials.
"""

from collections.abc import Mapping

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.settings import policy_to_json, resolve_policy
from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.bundle.selection import BundleSelection
from toolbench.lab.models import Cell, RunConfig, Trial
from toolbench.lab.scenarios.catalogue import is_version_available, load_scenario


def build_plans_json(selection: BundleSelection) -> JsonObject:
    """Return the content of plans.json. The requests that a trial sent are in the trial's own member."""
    first_trials = Trial.objects.filter(cell__in=selection.cells).order_by("cell_id", "position").distinct("cell_id")
    seed_by_cell = dict(first_trials.values_list("cell_id", "instance_seed"))
    return {
        "simulated": selection.run.simulated,
        "seed": selection.run.seed,
        "order_seed": selection.run.order_seed,
        "engine_version": selection.run.engine_version,
        "configurations": [_config_to_json(config) for config in selection.configs],
        "scenarios": list(
            {cell.scenario: _scenario_to_json(selection, cell, seed_by_cell) for cell in selection.cells}.values()
        ),
    }


def _config_to_json(config: RunConfig) -> JsonObject:
    """Return the layers of a configuration and the policy that results from them.

    If this engine no longer accepts the layers, the policy is null and a note gives the reason.
    """
    stored_fields = {"configuration": str(config), "policy_hash": config.policy_hash, "layers": config.layers}
    try:
        resolved = resolve_policy([(name, patch) for name, patch in config.layers])
    except PolicyError as error:
        return {**stored_fields, "policy": None, "note": str(error)}
    return {**stored_fields, "policy": policy_to_json(resolved.policy), "origins": dict(resolved.origins)}


def _scenario_to_json(selection: BundleSelection, cell: Cell, seed_by_cell: Mapping[int, int]) -> JsonObject:
    local_name, seed = selection.names.get(cell.scenario, cell.scenario), seed_by_cell.get(cell.pk, 0)
    scenario_fields = {"scenario": cell.scenario, "version": cell.scenario_version, "instance_kind": cell.instance_kind}
    if not is_version_available(local_name, cell.scenario_version):
        return {
            **scenario_fields,
            "note": "This version is not known here; the requests of its trials hold prompts and tools.",
        }
    scenario = load_scenario(local_name, cell.scenario_version)
    instance = scenario.draw_instance(seed, kind=cell.instance_kind)
    tools = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in instance.tools]
    instance_fields = {"instance_seed": seed, "system": instance.system, "user": instance.user_text, "tools": tools}
    if instance.further:
        instance_fields["further"] = [message.text for message in instance.further]
    return {**scenario_fields, "public": scenario.public, **instance_fields, "policy_layer": instance.layer}
