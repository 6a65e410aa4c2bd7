"""Content of plans.json, the plans of the trials in a bundle.

For each configuration, plans.json has the stored policy layers, the resolved policy and the origin of every key. For
each scenario, it has the prompts and tools of one instance.
"""

from collections.abc import Mapping

from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.settings import build_policy_json, resolve_policy
from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.bundle.selection import BundleSelection
from toolbench.lab.models import Cell, RunConfig, Trial
from toolbench.lab.scenarios.catalogue import is_version_available, load_scenario


def build_plans_json(selection: BundleSelection) -> JsonObject:
    """Return the content of plans.json. The requests of a trial are in the evidence member of the trial."""
    example_cells = tuple({cell.scenario: cell for cell in selection.cells}.values())  # one of each scenario
    first_trials = Trial.objects.filter(cell__in=example_cells).order_by("cell_id", "position").distinct("cell_id")
    seed_by_cell = dict(first_trials.values_list("cell_id", "instance_seed"))
    return {
        "simulated": selection.run.simulated,
        "seed": selection.run.seed,
        "order_seed": selection.run.order_seed,
        "engine_version": selection.run.engine_version,
        "configurations": [_config_to_json(config) for config in selection.configs],
        "scenarios": [_scenario_to_json(selection, cell, seed_by_cell) for cell in example_cells],
    }


def _config_to_json(config: RunConfig) -> JsonObject:
    """Return the layers of a configuration, the resolved policy and the origins of its keys.

    If the engine no longer accepts the layers, the policy is null and a note gives the reason.
    """
    stored_fields = {"configuration": str(config), "policy_hash": config.policy_hash, "layers": config.layers}
    try:
        resolved = resolve_policy([(name, patch) for name, patch in config.layers])
    except PolicyError as error:
        return {**stored_fields, "policy": None, "note": str(error)}
    return {**stored_fields, "policy": build_policy_json(resolved.policy), "origins": dict(resolved.origins)}


def _scenario_to_json(selection: BundleSelection, cell: Cell, seed_by_cell: Mapping[int, int]) -> JsonObject:
    """Return prompts and tools of the instance of a cell's first trial; a note if the scenario is not available here.

    Args:
        selection: the selection.
        cell: a cell of the scenario.
        seed_by_cell: instance seed of the first trial of each cell, by the cell's id; a cell without trials gets 0.
    """
    local_name, seed = selection.names.get(cell.scenario, cell.scenario), seed_by_cell.get(cell.pk, 0)
    scenario_fields = {"scenario": cell.scenario, "version": cell.scenario_version, "instance_kind": cell.instance_kind}
    if not is_version_available(local_name, cell.scenario_version):
        note = "This version is not available here; prompts and tools are in the requests of its trials."
        return {**scenario_fields, "note": note}
    scenario = load_scenario(local_name, cell.scenario_version)
    instance = scenario.draw_instance(seed, kind=cell.instance_kind)
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in instance.tools
    ]
    instance_fields = {"instance_seed": seed, "system": instance.system, "user": instance.user_text, "tools": tools}
    if instance.further:
        instance_fields["further"] = [message.text for message in instance.further]
    return {**scenario_fields, "public": scenario.public, **instance_fields, "policy_layer": instance.layer}
