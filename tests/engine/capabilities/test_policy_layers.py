import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from toolbench.engine.capabilities.policy_layers import build_capability_layers
from toolbench.engine.capabilities.record import Capabilities, CapabilityRecord, merge_records
from toolbench.engine.loop.turn import build_request
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.policy.presets import get_preset
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.engine.types import JsonObject, Message

SEEN = datetime(2026, 11, 1, tzinfo=UTC)
PROBED = "capability from probe 12 of 2026-11-01"


def build_layers(known: Capabilities, **options: object) -> dict[str, JsonObject]:
    return dict(
        build_capability_layers(merge_records([CapabilityRecord("probed", known, "probe 12", SEEN, 12)]), options)
    )


def build_sent_body(*patches: JsonObject, history: Sequence[Message] = ()) -> JsonObject:
    policy = resolve_policy((str(index), patch) for index, patch in enumerate(patches)).policy
    setup = prepare_turns("m", policy, system="", tools=ToolRegistry(), options={}, seed=None)
    sent: JsonObject = json.loads(build_request(setup, 0, history, has_tools=False).body)
    return sent


def build_history(call_id: str) -> list[Message]:
    call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "{}"},
    ]


def list_sent_ids(call_id: str, *patches: JsonObject) -> set[str]:
    body = build_sent_body(*patches, history=build_history(call_id))
    return {body["messages"][0]["tool_calls"][0]["id"], body["messages"][1]["tool_call_id"]}


def test_capability_layers_change_request_and_name_their_source() -> None:
    declared = CapabilityRecord("declared", Capabilities(max_tools=16, allows_midturn_system=False), "a person")
    probed = CapabilityRecord(
        "probed", Capabilities(supports_parallel_tools=False, reasoning_replay="none"), "probe 12", SEEN, 12
    )

    layers = dict(build_capability_layers(merge_records([declared, probed]), {}))

    assert layers == {
        PROBED: {
            "request_overrides": {"parallel_tool_calls": False},
            "reasoning_history": "none",
        },
        "capability declared by a person": {
            "message_transforms": ["midturn_system_to_user"],
            "max_tool_definitions_count": 16,
        },
    }
    resolved = resolve_policy(layers.items())
    assert resolved.origins["reasoning_history"] == PROBED


def test_capability_layers_of_supporting_endpoint_are_empty() -> None:
    assert (
        build_layers(
            Capabilities(supports_parallel_tools=True, limit_name="max_tokens", effort_name="reasoning_effort")
        )
        == {}
    )


def test_content_null_refused_sends_empty_text_unless_preset_wins() -> None:
    no_null = build_layers(Capabilities(content_null_ok=False))[PROBED]
    null = {"message_transforms": ["assistant_tool_calls_content_null_if_blank"]}

    assert build_sent_body(no_null, history=build_history("a"))["messages"][0]["content"] == ""
    assert build_sent_body(null, no_null, history=build_history("a"))["messages"][0]["content"] == ""
    assert build_sent_body(no_null, null, history=build_history("a"))["messages"][0]["content"] is None


def test_prompt_endpoint_layer_names_only_llama() -> None:
    assert build_layers(Capabilities(prompt_endpoint="llama"))[PROBED] == {"prompt_endpoint": "llama"}
    assert build_layers(Capabilities(prompt_endpoint="completions")) == {}


def test_tool_id_pattern_layer_changes_only_ids_that_do_not_match() -> None:
    nine_characters = build_layers(Capabilities(tool_id_pattern="^[a-zA-Z0-9]{9}$"))[PROBED]

    assert list_sent_ids("abcDEF123", nine_characters) == {"abcDEF123"}
    (fitted,) = list_sent_ids("call_of_another_endpoint", nine_characters)
    assert len(fitted) == 9


def test_tool_id_pattern_layer_keeps_kimi_ids_and_yields_to_preset() -> None:
    nine_characters = build_layers(Capabilities(tool_id_pattern="^[a-zA-Z0-9]{9}$"))[PROBED]
    kimi = build_layers(Capabilities(tool_id_pattern=r"^functions\.[^:]+:\d+$"))[PROBED]

    assert list_sent_ids("functions.f:0", kimi) == {"functions.f:0"}
    assert list_sent_ids("functions.f:0", nine_characters, get_preset("kimi_ids")) == {"functions.f:0"}
    assert list_sent_ids("functions.f:0", nine_characters, {"tool_id_pattern": None}) == {"functions.f:0"}


@pytest.mark.parametrize(
    ("known", "options", "expected"),
    [
        ({"limit_name": "max_completion_tokens"}, {"max_tokens": 9}, {"max_completion_tokens": 9}),
        ({"limit_name": "max_tokens"}, {"max_completion_tokens": 9}, {"max_tokens": 9}),
        ({"limit_name": "max_tokens"}, {"max_tokens": 9}, {"max_tokens": 9}),
        ({"effort_name": "reasoning.effort"}, {"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        ({"effort_name": "reasoning_effort"}, {"reasoning": {"effort": "low"}}, {"reasoning_effort": "low"}),
        (
            {"effort_name": "thinking.budget_tokens"},
            {"reasoning": {"effort": "medium"}, "max_tokens": 100},
            {"thinking": {"type": "enabled", "budget_tokens": 4096}, "max_tokens": 4196},
        ),
        (
            {"effort_name": "thinking.budget_tokens"},
            {"reasoning_effort": "none", "max_tokens": 100},
            {"thinking": {"type": "disabled"}, "max_tokens": 100},
        ),
        ({"effort_name": "thinking.budget_tokens"}, {"reasoning_effort": "odd"}, {"reasoning_effort": "odd"}),
        ({"effort_name": "thinking.budget_tokens"}, {"reasoning_effort": ["low"]}, {"reasoning_effort": ["low"]}),
        (
            {"effort_name": "thinking.budget_tokens"},
            {"reasoning_effort": "low", "max_tokens": 100.0},
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1124.0},
        ),
    ],
)
def test_limit_and_effort_layers_send_the_supported_parameter_name(
    known: dict[str, Any], options: JsonObject, expected: JsonObject
) -> None:
    patches = build_layers(Capabilities(**known), **options).values()

    body = build_sent_body({"llm_options_defaults": options}, *patches)
    assert {key: value for key, value in body.items() if key not in ("model", "messages")} == expected
