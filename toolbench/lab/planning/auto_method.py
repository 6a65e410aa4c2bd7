"""Choice of the method for configurations with method `auto`.

The method is chosen at launch or, if the model has to be probed first, after the probe. A configuration with another
method keeps it; if the probe shows that the endpoint refuses this method, the configuration's queued trials end as not
applicable.

`RunConfig.routing` holds {asked, method, reason, passed: [{method, why}], deprecated, known: {field: {value, source,
who}}}; `passed` has the methods that were considered and rejected. `routing` is {} for other methods than `auto`,
until the method is chosen, and if an error prevented the choice.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from toolbench.engine.capabilities.method_choice import AUTO, MethodChoice, choose_method, find_method_refusal
from toolbench.engine.capabilities.policy_layers import LAYER_PREFIX, build_capability_layers
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
from toolbench.lab.worker.job_failures import describe_internal_error, record_failures
from toolbench.lab.worker.queue import notify_workers

logger = logging.getLogger(__name__)

ROUTING_LAYER = "routing"
NO_METHOD = "none"  # RunConfig.method if the endpoint supports no method of the policy, or after an error
# Names of the layers above those of capabilities, and beginnings of such names.
_USER_LAYERS = ("profile", "run", "scenario")
_USER_LAYER_PREFIXES = ("preset ", "workaround ")
_ENDING_STATES = (*Run.ENDED, Run.State.CANCELLING)


def needs_probe(capabilities: Capabilities) -> bool:
    """Return whether a probe has to find out if the model supports tools.

    No probe is needed if tool support is known, or if the endpoint is known to refuse or drop the tools of requests.
    """
    return capabilities.supports_tool_use is None and capabilities.tools_field in (None, "accepted")


def choose_available_method(layers: Layers, effective: EffectiveCapabilities) -> MethodChoice:
    """Choose one of the policy's methods by the rules of `choose_method`.

    Returns:
        The choice; its `method` is "" if no method is possible at the endpoint.

    Raises:
        PolicyError: the layers cannot be resolved.
    """
    return choose_method(resolve_policy(layers).policy.paths, effective.capabilities)


def add_routing_layer(layers: Layers, chosen: MethodChoice) -> Layers:
    """Return the layers with a routing layer, which sets the chosen method and, if it has one, its constraint.

    It lies directly above the lowest layer, which has the settings of the launch. An earlier routing layer is removed.
    """
    patch: JsonObject = {"method": chosen.method}
    if chosen.constraint:
        patch["constraint"] = chosen.constraint
    others = tuple((name, other_patch) for name, other_patch in layers if name != ROUTING_LAYER)
    return (*others[:1], (ROUTING_LAYER, patch), *others[1:])


def add_capability_layers(layers: Layers, strategy: str, effective: EffectiveCapabilities) -> Layers:
    """Return the layers with capability layers, which adapt requests to the capabilities of the endpoint.

    Capability layers lie below the layers of presets, workarounds, profile and overrides. Earlier ones are removed.
    Strategies raw and wire_standard get none. For every strategy, the lowest layer gets the first constraint that the
    endpoint enforces and the text format, if they are known.

    Args:
        layers: the policy layers, lowest first; the lowest one has the settings of the launch.
        strategy: `base` of the strategy expression, such as "production" of "production+some_preset".
        effective: capabilities of the endpoint.

    Raises:
        PolicyError: the layers cannot be resolved.
    """
    (launch_name, launch_patch), *upper = ((name, patch) for name, patch in layers if not name.startswith(LAYER_PREFIX))
    others = ((launch_name, {**launch_patch, **_build_endpoint_patch(effective.capabilities)}), *upper)
    if has_no_defaults(strategy):
        return others
    policy = resolve_policy(others).policy
    added = build_capability_layers(effective, policy.llm_options_defaults | policy.request_overrides)
    index = next((i for i, (name, _) in enumerate(others) if _is_user_layer(name)), len(others))
    return (*others[:index], *added, *others[index:])


def _build_endpoint_patch(capabilities: Capabilities) -> JsonObject:
    """Return the patch with the first constraint that the endpoint enforces and the text format, if known."""
    known_settings = {
        "constraint": next(iter(capabilities.constrained or ()), ""),
        "text_format": capabilities.text_format,
    }
    return {name: value for name, value in known_settings.items() if value}


def _is_user_layer(name: str) -> bool:
    return name in _USER_LAYERS or name.startswith(_USER_LAYER_PREFIXES)


def build_routing(chosen: MethodChoice, effective: EffectiveCapabilities) -> JsonObject:
    """Return the value of `RunConfig.routing` for a method choice."""
    known_fields = {
        name: {"value": value, "source": effective.origins[name].source, "who": effective.origins[name].who}
        for name, value in effective.capabilities.get_known_values().items()
    }
    return {"asked": AUTO, **chosen.to_json(), "known": known_fields}


def list_models_to_probe(run: Run) -> list[Model]:
    """Return the models that have to be probed before trials of the run can start, in the order of their ids."""
    ids = RunConfig.objects.filter(run=run, awaits_probe=True).values_list("model_id", flat=True)
    models = list(Model.objects.filter(pk__in=ids).select_related("provider").order_by("pk"))
    effective_by_model = get_capabilities_by_model(models)
    return [model for model in models if needs_probe(effective_by_model[model.pk].capabilities)]


def queue_first_probes(run: Run) -> None:
    """Queue the probes that trials of the run wait for. Call it in the transaction that queues the trials."""
    for model in list_models_to_probe(run):
        queue_probe(model, Probe.Kind.FIRST_USE, why=f"Run {run.pk} uses this model for the first time.")


def decide_waiting_methods(model_id: int) -> int:
    """Decide the configurations that wait for a probe of the model, unless such a probe is queued or running.

    To decide a configuration is to replace method auto by the chosen method and to store tool support and capability
    layers. Then its trials can start; they end if the method cannot be used. After an inconclusive probe, tool support
    stays unknown, and method native counts as possible.

    Configurations of runs that have ended or are being cancelled are left out.

    Returns:
        The number of decided configurations; 0 if a probe is queued or running.
    """
    if Probe.objects.filter(model_id=model_id).exclude(state=Probe.State.DONE).exists():
        return 0
    waiting = RunConfig.objects.filter(model_id=model_id, awaits_probe=True).exclude(run__state__in=_ENDING_STATES)
    configs = list(waiting.select_related("run"))
    if configs:
        model = Model.objects.select_related("provider").get(pk=model_id)
        effective = get_model_capabilities(model)
        support_columns = build_probe_columns(model_id, effective)
        with transaction.atomic():
            for config in configs:
                _decide_config(config, effective, support_columns)
            transaction.on_commit(lambda: notify_workers([model.provider_id]))
    return len(configs)


def decide_all_waiting_methods() -> int:
    """Decide all configurations that wait although no probe of their model is queued or running.

    Call it regularly, since the notification at the end of a probe may be lost. An error for one model is logged and
    counted, and the other models are still processed.

    Returns:
        The number of decided configurations.
    """
    waiting = RunConfig.objects.filter(awaits_probe=True, model__isnull=False).exclude(run__state__in=_ENDING_STATES)
    decided = 0
    for model_id in set(waiting.values_list("model_id", flat=True)) - {None}:
        with record_failures("choosing methods after a probe"):
            decided += decide_waiting_methods(model_id)
    return decided


def _decide_config(config: RunConfig, effective: EffectiveCapabilities, support_columns: Mapping[str, Any]) -> None:
    """Store the method and layers of a configuration; end its queued trials if no method can be used.

    The trials also end if the installed engine does not accept the frozen settings, or after an internal error.

    Args:
        config: a configuration that waits for a probe.
        effective: the capabilities after the probe.
        support_columns: the columns of `build_probe_columns`, which are stored too.
    """
    try:
        columns, refusal = _build_decision(config, effective)
    except PolicyError as error:
        columns, refusal = {"method": NO_METHOD}, f"The settings of the run are no longer valid: {error}"
    except Exception as error:
        logger.exception("The method of configuration %s could not be chosen", config.pk)
        columns = {"method": NO_METHOD}
        refusal = describe_internal_error(error)
    RunConfig.objects.filter(pk=config.pk, awaits_probe=True).update(awaits_probe=False, **columns, **support_columns)
    if refusal:
        _end_as_not_applicable(config, refusal)


def _build_decision(config: RunConfig, effective: EffectiveCapabilities) -> tuple[dict[str, Any], str]:
    """Return the columns to update, and the reason why the method cannot be used; "" if it can.

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
    """Return the columns `layers` and `policy_hash`.

    Raises:
        PolicyError: the layers cannot be resolved.
    """
    return {
        "layers": [[name, patch] for name, patch in layers],
        "policy_hash": hash_policy(resolve_policy(layers).policy),
    }


def _end_as_not_applicable(config: RunConfig, reason: str) -> None:
    """End the queued trials of a configuration as not applicable, with the reason as sentence."""
    queued = Trial.objects.filter(config=config, state=Trial.State.QUEUED)
    cell_ids: Iterable[int] = sorted(Cell.objects.filter(config=config).values_list("pk", flat=True))
    queued.update(
        state=Trial.State.DONE,
        outcome=Trial.Outcome.NOT_APPLICABLE,
        failure_class="no_path",
        sentence=reason[:4000],
    )
    mark_stale(cell_ids)
