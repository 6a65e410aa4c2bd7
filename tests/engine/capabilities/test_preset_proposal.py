from typing import Any

import pytest

from toolbench.engine.capabilities.preset_proposal import propose_preset
from toolbench.engine.capabilities.record import parse_capabilities
from toolbench.engine.policy.settings import resolve_policy


@pytest.mark.parametrize(
    ("known", "patch"),
    [
        ({}, {}),
        ({"calls_shape": "list", "arguments_shape": "text", "supports_parallel_tools": True}, {}),
        ({"calls_shape": "function_call"}, {"response_transforms": ["assistant_function_call_to_tool_calls"]}),
        ({"calls_shape": "object"}, {"response_transforms": ["assistant_tool_calls_object_to_array"]}),
        (
            {"arguments_shape": "object"},
            {"response_transforms": ["assistant_tool_calls_arguments_json_string_if_hash"]},
        ),
        (
            {"arguments_shape": "blank"},
            {"tool_call_transforms": ["assistant_tool_calls_arguments_blank_to_empty_object"]},
        ),
        (
            {"supports_tool_use": False, "text_format": "hermes"},
            {"response_transforms": ["assistant_content_tool_call_tags_to_tool_calls"]},
        ),
        (
            {"tool_id_pattern": "^[a-zA-Z0-9]{9}$", "allows_midturn_system": False},
            {"message_transforms": ["tool_call_ids_nine_characters", "midturn_system_to_user"]},
        ),
        ({"content_null_ok": False}, {"message_transforms": ["assistant_tool_calls_content_empty_if_null"]}),
        ({"supports_parallel_tools": False}, {"request_overrides": {"parallel_tool_calls": False}}),
        ({"ignores": ["parallel_tool_calls"]}, {"max_tool_calls_per_turn": 1}),
    ],
)
def test_propose_preset_contains_only_what_the_endpoint_needs(known: dict[str, Any], patch: dict[str, Any]) -> None:
    proposal = propose_preset(parse_capabilities(known))

    assert proposal.patch == patch
    assert bool(proposal.reasons) == bool(patch)
    resolve_policy([("strict", {"strict": True}), ("proposed", proposal.patch)])
