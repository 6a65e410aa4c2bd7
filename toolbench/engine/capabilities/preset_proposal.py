"""Proposal of a preset from an endpoint's capabilities: a policy patch, each part with its reason."""

from dataclasses import dataclass

from toolbench.engine.capabilities.policy_layers import EMPTY_CONTENT_FOR_NULL, MOVE_SYSTEM_TO_USER
from toolbench.engine.capabilities.record import Capabilities
from toolbench.engine.types import JsonObject

NINE_CHARACTER_ID_PATTERN = "^[a-zA-Z0-9]{9}$"

_ProposalRows = tuple[tuple[bool, str, str, str], ...]
"""Rows of (whether the row applies, policy key, transform, reason)."""


@dataclass(frozen=True, slots=True)
class PresetProposal:
    """A proposed preset.

    Attributes:
        patch: the policy patch; empty if the endpoint needs none.
        reasons: a sentence for each transform and option of the patch.
    """

    patch: JsonObject
    reasons: tuple[str, ...]


def propose_preset(capabilities: Capabilities) -> PresetProposal:
    """Return the transforms and options that compensate for deviations of the endpoint."""
    transforms_by_key: dict[str, list[str]] = {}
    patch: JsonObject = {}
    reasons: list[str] = []
    for is_applicable, key, transform, reason in (*_list_answer_rows(capabilities), *_list_history_rows(capabilities)):
        if is_applicable:
            transforms_by_key.setdefault(key, []).append(transform)
            reasons.append(reason)
    if capabilities.supports_parallel_tools is False:
        patch["request_overrides"] = {"parallel_tool_calls": False}
        reasons.append("The endpoint makes only one call in an answer.")
    if "parallel_tool_calls" in (capabilities.ignores or ()):
        patch["max_tool_calls_per_turn"] = 1
        reasons.append(
            "The endpoint ignores parallel_tool_calls and may send several calls: only the first one is kept."
        )
    return PresetProposal({**transforms_by_key, **patch}, tuple(reasons))


def _list_answer_rows(capabilities: Capabilities) -> _ProposalRows:
    """Return the rows for deviations in the answers of an endpoint."""
    return (
        (
            capabilities.calls_shape == "function_call",
            "response_transforms",
            "assistant_function_call_to_tool_calls",
            "Calls are in the older field function_call.",
        ),
        (
            capabilities.calls_shape == "object",
            "response_transforms",
            "assistant_tool_calls_object_to_array",
            "tool_calls is one object instead of a list.",
        ),
        (
            capabilities.arguments_shape == "object",
            "response_transforms",
            "assistant_tool_calls_arguments_json_string_if_hash",
            "Arguments are an object instead of a text.",
        ),
        (
            capabilities.text_format == "hermes" and capabilities.supports_tool_use is False,
            "response_transforms",
            "assistant_content_tool_call_tags_to_tool_calls",
            "Calls are in the text, between tool_call tags.",
        ),
        (
            capabilities.arguments_shape == "blank",
            "tool_call_transforms",
            "assistant_tool_calls_arguments_blank_to_empty_object",
            "Calls without arguments have blank ones.",
        ),
    )


def _list_history_rows(capabilities: Capabilities) -> _ProposalRows:
    """Return the rows for earlier messages that an endpoint refuses when they are sent back."""
    return (
        (
            capabilities.tool_id_pattern == NINE_CHARACTER_ID_PATTERN,
            "message_transforms",
            "tool_call_ids_nine_characters",
            "The endpoint accepts only call ids of nine letters or digits.",
        ),
        (
            capabilities.content_null_ok is False,
            "message_transforms",
            EMPTY_CONTENT_FOR_NULL,
            "The endpoint refuses earlier messages with calls and content null.",
        ),
        (
            capabilities.allows_midturn_system is False,
            "message_transforms",
            MOVE_SYSTEM_TO_USER,
            "The endpoint refuses a system message in the middle of a conversation.",
        ),
    )
