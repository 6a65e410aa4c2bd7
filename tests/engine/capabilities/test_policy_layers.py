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


def layers(known: Capabilities, **options: object) -> dict[str, JsonObject]:
    return dict(
        build_capability_layers(merge_records([CapabilityRecord("probed", known, "probe 12", SEEN, 12)]), options)
    )


def sent_body(*patches: JsonObject, history: Sequence[Message] = ()) -> JsonObject:
    policy = resolve_policy((str(place), patch) for place, patch in enumerate(patches)).policy
    setup = prepare_turns("m", policy, system="", tools=ToolRegistry(), options={}, seed=None)
    sent: JsonObject = json.loads(build_request(setup, 0, history, has_tools=False).body)
    return sent


def called(call_id: str) -> list[Message]:
    call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "{}"},
    ]


def sent_ids(call_id: str, *patches: JsonObject) -> set[str]:
    body = sent_body(*patches, history=called(call_id))
    return {body["messages"][0]["tool_calls"][0]["id"], body["messages"][1]["tool_call_id"]}


def test_each_known_capability_changes_request_under_its_source_name() -> None:
    declared = CapabilityRecord("declared", Capabilities(max_tools=16, allows_midturn_system=False), "a person")
    probed = CapabilityRecord(
        "probed", Capabilities(supports_parallel_tools=False, reasoning_replay="none"), "probe 12", SEEN, 12
    )

    found = dict(build_capability_layers(merge_records([declared, probed]), {}))

    assert found == {
        PROBED: {
            "request_overrides": {"parallel_tool_calls": False},
            "reasoning_history": "none",
        },
        "capability declared by a person": {
            "message_transforms": ["midturn_system_to_user"],
            "max_tool_definitions_count": 16,
        },
    }
    resolved = resolve_policy(found.items())
    assert resolved.origins["reasoning_history"] == PROBED


def test_nothing_known_against_an_endpoint_changes_nothing() -> None:
    assert (
        layers(Capabilities(supports_parallel_tools=True, limit_name="max_tokens", effort_name="reasoning_effort"))
        == {}
    )


def test_null_content_is_not_sent_if_refused_unless_preset_wants_it() -> None:
    no_null = layers(Capabilities(content_null_ok=False))[PROBED]
    null = {"message_transforms": ["assistant_tool_calls_content_null_if_blank"]}

    assert sent_body(no_null, history=called("a"))["messages"][0]["content"] == ""
    assert sent_body(null, no_null, history=called("a"))["messages"][0]["content"] == ""
    assert sent_body(no_null, null, history=called("a"))["messages"][0]["content"] is None


def test_a_prompt_goes_where_one_is_continued() -> None:
    assert layers(Capabilities(prompt_endpoint="llama"))[PROBED] == {"prompt_endpoint": "llama"}
    assert layers(Capabilities(prompt_endpoint="completions")) == {}


def test_ids_are_fitted_to_the_pattern_that_the_endpoint_takes() -> None:
    nine = layers(Capabilities(tool_id_pattern="^[a-zA-Z0-9]{9}$"))[PROBED]

    assert sent_ids("abcDEF123", nine) == {"abcDEF123"}
    (fitted,) = sent_ids("call_of_another_endpoint", nine)
    assert len(fitted) == 9


def test_ids_of_kimi_are_kept_and_a_preset_wins_over_what_a_probe_says() -> None:
    nine = layers(Capabilities(tool_id_pattern="^[a-zA-Z0-9]{9}$"))[PROBED]
    kimi = layers(Capabilities(tool_id_pattern=r"^functions\.[^:]+:\d+$"))[PROBED]

    assert sent_ids("functions.f:0", kimi) == {"functions.f:0"}
    assert sent_ids("functions.f:0", nine, get_preset("kimi_ids")) == {"functions.f:0"}
    assert sent_ids("functions.f:0", nine, {"tool_id_pattern": None}) == {"functions.f:0"}


@pytest.mark.parametrize(
    ("known", "options", "sent"),
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
def test_limit_and_effort_go_out_under_the_name_that_has_its_effect(
    known: dict[str, Any], options: JsonObject, sent: JsonObject
) -> None:
    patches = layers(Capabilities(**known), **options).values()

    body = sent_body({"llm_options_defaults": options}, *patches)
    assert {key: value for key, value in body.items() if key not in ("model", "messages")} == sent
