"""Policy layers derived from the capabilities of an endpoint, one for each source of capabilities."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolbench.engine.capabilities.record import Capabilities, CapabilityRecord, EffectiveCapabilities
from toolbench.engine.policy.presets import Layers
from toolbench.engine.types import JsonObject

LAYER_PREFIX = "capability "
MOVE_SYSTEM_TO_USER = "midturn_system_to_user"
EMPTY_CONTENT_FOR_NULL = "assistant_tool_calls_content_empty_if_null"
# Policy key to which the value of a capability field is copied, by name of the field.
_POLICY_KEYS = {
    "max_tools": "max_tool_definitions_count",
    "tool_id_pattern": "tool_id_pattern",
    "usual_findings": "usual_findings",
}
# Request transform that renames the token limit, by the name that the endpoint reads.
_LIMIT_TRANSFORMS = {
    "max_completion_tokens": "max_tokens_to_max_completion_tokens",
    "max_tokens": "max_completion_tokens_to_max_tokens",
}
# Request transforms that move the reasoning effort to the field that the endpoint reads, by name of this field.
_EFFORT_TRANSFORMS = {
    "reasoning_effort": ["reasoning_object_to_reasoning_effort"],
    "output_config.effort": ["reasoning_object_to_reasoning_effort"],  # the wire format renames reasoning_effort
    "reasoning.effort": ["reasoning_effort_to_reasoning_object"],
    "thinking.budget_tokens": ["reasoning_object_to_reasoning_effort", "reasoning_effort_to_thinking_budget"],
}


def build_capability_layers(effective: EffectiveCapabilities, options: Mapping[str, Any]) -> Layers:
    """Return one layer for each source of capabilities that change the policy; () if no capability changes it.

    Args:
        effective: the capabilities.
        options: request options of the other layers. The transforms of the reasoning effort are added only if `options`
            has `reasoning_effort` or `reasoning`, and the transform from `max_completion_tokens` to `max_tokens` only
            if `options` has the former. The transform from `max_tokens` to `max_completion_tokens` does not depend on
            `options`, since scenarios may send `max_tokens` too.
    """
    layers: dict[str, JsonObject] = {}
    for field, patch in _iterate_patches(effective.capabilities, options):
        layer = layers.setdefault(build_layer_name(effective.origins[field]), {})
        for key, value in patch.items():
            layer[key] = [*layer.get(key, []), *value] if isinstance(value, list) else value
    return tuple(layers.items())


def build_layer_name(record: CapabilityRecord) -> str:
    """Return the name of the layer for the source of a record.

    Examples are `capability from probe 12 of 2026-11-22` and `capability declared by a person`.
    """
    if record.source == "declared":
        return f"{LAYER_PREFIX}declared by {record.who}"
    return f"{LAYER_PREFIX}from {record.who}" + (f" of {record.at:%Y-%m-%d}" if record.at else "")


def _iterate_patches(capabilities: Capabilities, options: Mapping[str, Any]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the name of each capability field that changes the policy, with its policy patch."""
    if capabilities.supports_parallel_tools is False:
        yield "supports_parallel_tools", {"request_overrides": {"parallel_tool_calls": False}}
    if capabilities.allows_midturn_system is False:
        yield "allows_midturn_system", {"message_transforms": [MOVE_SYSTEM_TO_USER]}
    if capabilities.content_null_ok is False:
        yield "content_null_ok", {"message_transforms": [EMPTY_CONTENT_FOR_NULL]}
    if capabilities.prompt_endpoint == "llama":
        yield "prompt_endpoint", {"prompt_endpoint": "llama"}
    if capabilities.reasoning_replay in ("none", "tags"):
        yield "reasoning_replay", {"reasoning_history": capabilities.reasoning_replay}
    for field, key in _POLICY_KEYS.items():
        if value := capabilities.get_known_values().get(field):
            yield field, {key: list(value) if isinstance(value, tuple) else value}
    if capabilities.limit_name in _LIMIT_TRANSFORMS and (
        capabilities.limit_name != "max_tokens" or "max_completion_tokens" in options
    ):
        yield "limit_name", {"request_transforms": [_LIMIT_TRANSFORMS[capabilities.limit_name]]}
    if capabilities.effort_name in _EFFORT_TRANSFORMS and {"reasoning_effort", "reasoning"} & options.keys():
        yield "effort_name", {"request_transforms": _EFFORT_TRANSFORMS[capabilities.effort_name]}
