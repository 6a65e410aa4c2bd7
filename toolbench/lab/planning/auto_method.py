"""Method `auto`: which trials wait for a probe, and which method follows.

The method is chosen at launch if enough is known, else when the probe is done. A named method stays, unless the
endpoint refuses tools. `RunConfig.routing` holds {asked, method, reason, passed: [{method, why}], deprecated, known};
{} for a named method.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from toolbench.engine.capabilities.method_choice import AUTO, MethodChoice, choose_method, find_method_refusal
from toolbench.engine.capabilities.policy_layers import PREFIX, build_capability_layers
from toolbench.engine.capabilities.record import Capabilities, EffectiveCapabilities
from toolbench.engine.errors import PolicyError
from toolbench.engine.policy.presets import Layers, has_no_defaults
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.types import JsonObject
from toolbench.lab.endpoints.capabilities import get_capabilities_by_model, get_model_capabilities
from toolbench.lab.endpoints.probe_job import queue_probe
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.models import Cell, Model, Probe, Run, RunConfig, Trial
from toolbench.lab.planning.policy_values import hash_policy
from toolbench.lab.planning.strategies import parse_strategy
from toolbench.lab.planning.tool_support import build_probe_columns
from toolbench.lab.worker.job_failures import record_failures
from toolbench.lab.worker.queue import notify_workers

logger = logging.getLogger(__name__)

ROUTING_LAYER = "routing"
NO_METHOD = "none"  # of a configuration that waited for one
_USER_LAYERS = ("profile", "run", "scenario")  # what a person asked for lies above what the endpoint can do
_USER_LAYER_PREFIXES = ("preset ", "workaround ")
_ENDING_STATES = (*Run.ENDED, Run.State.CANCELLING)


def needs_probe(known: Capabilities) -> bool:
    """Return whether no source says if the model calls tools."""
    return known.supports_tool_use is None and known.tools_field in (None, "accepted")


def choose_available_method(layers: Layers, effective: EffectiveCapabilities) -> MethodChoice:
    """Return the first of the policy's methods that the endpoint supports."""
    return choose_method(resolve_policy(layers).policy.paths, effective.capabilities)


def add_routing_layer(layers: Layers, chosen: MethodChoice) -> Layers:
    """Add a layer with the chosen method, above what the launch sets for every configuration."""
    patch: JsonObject = {"method": chosen.method}
    if chosen.constraint:
        patch["constraint"] = chosen.constraint
    rest = tuple((name, below) for name, below in layers if name != ROUTING_LAYER)
    return (*rest[:1], (ROUTING_LAYER, patch), *rest[1:])


def add_capability_layers(layers: Layers, strategy: str, effective: EffectiveCapabilities) -> Layers:
    """Add the layers that keep the run within the capabilities of the endpoint.

    They lie below everything that a person chose: presets, workarounds, profile, overrides. Strategies raw and
    wire_standard have none.

    Raises:
        PolicyError: the layers cannot be resolved.
    """
    rest = tuple((name, patch) for name, patch in layers if not name.startswith(PREFIX))
    if has_no_defaults(strategy):
        return rest
    policy = resolve_policy(rest).policy
    fitting = build_capability_layers(effective, policy.llm_options_defaults | policy.request_overrides)
    place = next((at for at, (name, _) in enumerate(rest) if _is_user_layer(name)), len(rest))
    return (*rest[:place], *fitting, *rest[place:])


def _is_user_layer(name: str) -> bool:
    return name in _USER_LAYERS or name.startswith(_USER_LAYER_PREFIXES)


def build_routing(chosen: MethodChoice, effective: EffectiveCapabilities) -> JsonObject:
    """Return what is stored of a method choice."""
    known = {
        name: {"value": value, "source": effective.origins[name].source, "who": effective.origins[name].who}
        for name, value in effective.capabilities.known().items()
    }
    return {"asked": AUTO, **chosen.to_json(), "known": known}


def list_models_to_probe(run: Run) -> list[Model]:
    """Return the models that trials of the run wait for and whose tool support is unknown."""
    ids = RunConfig.objects.filter(run=run, awaits_probe=True).values_list("model_id", flat=True)
    models = list(Model.objects.filter(pk__in=ids).select_related("provider"))
    known = get_capabilities_by_model(models)
    return [model for model in models if needs_probe(known[model.pk].capabilities)]


def queue_first_probes(run: Run) -> None:
    """Queue the probes that trials of this new run wait for. Call it in the transaction that writes the run."""
    for model in list_models_to_probe(run):
        queue_probe(model, Probe.Kind.FIRST_USE, why=f"Run {run.pk} uses it for the first time.")


def decide_waiting_methods(model_id: int) -> int:
    """Choose the method of configurations that waited for this model's probe, unless one is open; return their number.

    After an inconclusive probe, tool support is unknown and native is tried.
    """
    if Probe.objects.filter(model_id=model_id).exclude(state=Probe.State.DONE).exists():
        return 0
    waiting = RunConfig.objects.filter(model_id=model_id, awaits_probe=True).exclude(run__state__in=_ENDING_STATES)
    configs = list(waiting.select_related("run"))
    if configs:
        model = Model.objects.select_related("provider").get(pk=model_id)
        effective = get_model_capabilities(model)
        support = build_probe_columns(model_id, effective)
        with transaction.atomic():
            for config in configs:
                _decide_config(config, effective, support=support)
            transaction.on_commit(lambda: notify_workers([model.provider_id]))
    return len(configs)


def decide_all_waiting_methods() -> int:
    """Choose the method of all configurations that wait without an open probe, because a notification was lost.

    A model that fails is logged and counted, and does not stop the others. Return the number of configurations.
    """
    waiting = RunConfig.objects.filter(awaits_probe=True, model__isnull=False).exclude(run__state__in=_ENDING_STATES)
    decided = 0
    for model_id in set(waiting.values_list("model_id", flat=True)) - {None}:
        with record_failures("choosing methods after a probe"):
            decided += decide_waiting_methods(model_id)
    return decided


def _decide_config(config: RunConfig, effective: EffectiveCapabilities, *, support: Mapping[str, Any]) -> None:
    """Choose the method of a configuration.

    If this version does not accept its frozen settings, its waiting trials end, and no others.
    """
    try:
        columns, why_not = _build_decision(config, effective)
    except PolicyError as error:
        columns, why_not = {"method": NO_METHOD}, f"The settings of the run are no longer valid: {error}"
    except Exception as error:
        logger.exception("The method of configuration %s could not be chosen", config.pk)
        columns = {"method": NO_METHOD}
        why_not = f"Toolbench itself failed ({type(error).__name__}) while choosing a method; the log has more."
    RunConfig.objects.filter(pk=config.pk, awaits_probe=True).update(awaits_probe=False, **columns, **support)
    if why_not:
        _end_as_not_applicable(config, why_not)


def _build_decision(config: RunConfig, effective: EffectiveCapabilities) -> tuple[dict[str, Any], str]:
    """Return the columns of the choice, and the reason why no method is left, "" if one is.

    Raises:
        PolicyError: the layers cannot be resolved.
    """
    layers: Layers = tuple((name, patch) for name, patch in config.layers)
    layers = add_capability_layers(layers, parse_strategy(config.strategy).base, effective)
    if config.method != AUTO:
        return _build_layer_columns(layers), find_method_refusal(config.method, effective.capabilities)
    chosen = choose_available_method(layers, effective)
    layers = add_routing_layer(layers, chosen) if chosen.method else layers
    columns = {
        "method": chosen.method or NO_METHOD,
        "routing": build_routing(chosen, effective),
        **_build_layer_columns(layers),
    }
    return columns, "" if chosen.method else chosen.reason


def _build_layer_columns(layers: Layers) -> dict[str, Any]:
    """Return the columns of the layers.

    Raises:
        PolicyError: the layers cannot be resolved.
    """
    return {
        "layers": [[name, patch] for name, patch in layers],
        "policy_hash": hash_policy(resolve_policy(layers).policy),
    }


def _end_as_not_applicable(config: RunConfig, why: str) -> None:
    """End the waiting trials of a configuration before their first request as not applicable, with the reason."""
    waiting = Trial.objects.filter(config=config, state=Trial.State.QUEUED)
    cells: Iterable[int] = sorted(Cell.objects.filter(config=config).values_list("pk", flat=True))
    waiting.update(
        state=Trial.State.DONE,
        outcome=Trial.Outcome.NOT_APPLICABLE,
        failure_class="no_path",
        sentence=why[:4000],
    )
    mark_stale(cells)
