from typing import Any

import pytest
from pydantic import ValidationError

from tests.engine.wire_formats.anthropic.sdk_types import parse_request
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.anthropic.requests import MESSAGES_DATA, encode_request

USER = {"role": "user", "content": "Go."}
GET = {"name": "get", "description": "Reads.", "parameters": {"type": "object", "properties": {"at": {}}}}
TOOL = {"type": "function", "function": GET}
SCHEMA = {"type": "object", "properties": {"final": {"type": "string"}}}


def encode(**body: Any) -> tuple[JsonObject, list[str]]:
    """Return the encoded body, checked by the SDK's types, and the names of the changes."""
    request = {"model": "claude-test", "messages": [USER], **body}
    sent, changes = encode_request(request)
    assert parse_request(sent) == sent
    assert {change.kind for change in changes} <= {"wire"}
    return sent, [change.name for change in changes]


def encode_tool_choice(**body: Any) -> Any:
    return encode(tools=[TOOL], **body)[0].get("tool_choice")


def test_sdk_types_refuse_missing_and_drop_unknown_parameters() -> None:
    with pytest.raises(ValidationError):
        parse_request({"model": "m", "messages": [USER]})
    assert parse_request({"model": "m", "messages": [], "max_tokens": 1, "n": 2}) == {
        "model": "m",
        "messages": [],
        "max_tokens": 1,
    }


def test_encode_request_joins_system_messages_at_the_top() -> None:
    sent, _ = encode(messages=[{"role": "system", "content": "One."}, {"role": "developer", "content": "Two."}, USER])
    assert sent["system"] == "One.\n\nTwo."
    assert [message["role"] for message in sent["messages"]] == ["user"]
    assert "system" not in encode(messages=[{"role": "system", "content": " "}, USER])[0]


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, MESSAGES_DATA["max_tokens"]),
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 8}, 8),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, MESSAGES_DATA["max_tokens"] + 2048),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 3000}, 3000),
    ],
)
def test_encode_request_always_sends_max_tokens(options: JsonObject, sent: int) -> None:
    assert encode(**options)[0]["max_tokens"] == sent


def test_encode_request_renders_functions_as_tools_with_input_schema() -> None:
    strict = {"type": "function", "function": {**GET, "strict": True}, "cache_control": {"type": "ephemeral"}}
    vendor_tool = {"type": "bash_20250124", "name": "bash"}
    sent, _ = encode(tools=[TOOL, strict, vendor_tool, {"type": "function", "function": {"name": "bare"}}])
    get = {"name": "get", "description": "Reads.", "input_schema": GET["parameters"]}
    marked = {**get, "strict": True, "cache_control": {"type": "ephemeral"}}
    assert sent["tools"] == [get, marked, vendor_tool, {"name": "bare", "input_schema": {"type": "object"}}]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, None),
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ("any", {"type": "any"}),
        ("none", {"type": "none"}),
        ({"type": "function", "function": {"name": "get"}}, {"type": "tool", "name": "get"}),
        ({"type": "any"}, {"type": "any"}),
    ],
)
def test_encode_request_maps_each_tool_choice(choice: Any, sent: Any) -> None:
    assert encode_tool_choice(tool_choice=choice) == sent


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", {"type": "any", "disable_parallel_tool_use": True}),
        ("none", {"type": "none"}),
    ],
)
def test_parallel_tool_calls_off_is_part_of_every_choice_but_none(choice: Any, sent: Any) -> None:
    assert encode_tool_choice(tool_choice=choice, parallel_tool_calls=False) == sent


@pytest.mark.parametrize(
    "options",
    [{"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"model": f"{MESSAGES_DATA['no_forcing'][0]}-20270101"}],
)
def test_forced_choice_becomes_auto_with_change_if_it_is_not_allowed(options: JsonObject) -> None:
    for choice in ("required", {"type": "function", "function": {"name": "get"}}):
        sent, changes = encode(tools=[TOOL], tool_choice=choice, **options)
        assert sent["tool_choice"] == {"type": "auto"}
        assert "forced_choice_to_auto" in changes


def test_encode_request_records_unknown_tool_choice_that_it_leaves_out() -> None:
    sent, changes = encode(tools=[TOOL], tool_choice="sometimes")
    assert ("tool_choice" in sent, changes) == (False, ["option_left_out"])


def test_forced_choice_is_sent_with_adaptive_thinking() -> None:
    assert encode_tool_choice(tool_choice="required", thinking={"type": "adaptive"}) == {"type": "any"}


def test_encode_request_without_tools_sends_no_choice_and_no_flag() -> None:
    sent, changes = encode(tool_choice="required", parallel_tool_calls=False)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & sent.keys()
    assert changes == []


def test_encode_request_drops_options_of_other_apis() -> None:
    sent, changes = encode(n=1, min_p=0.1, grammar="x", stream_options={"include_usage": True}, stream=True)
    assert sent.keys() == {"model", "max_tokens", "messages", "stream"}
    assert changes == ["option_left_out"] * 3


def test_encode_request_renames_options() -> None:
    sent, changes = encode(stop="END", user="u-1", reasoning_effort="minimal", top_k=4, service_tier="auto")
    assert sent["stop_sequences"] == ["END"]
    assert sent["metadata"] == {"user_id": "u-1"}
    assert sent["output_config"] == {"effort": "low"}
    assert (sent["top_k"], sent["service_tier"], changes) == (4, "auto", [])
    assert encode(reasoning_effort="none")[1] == ["option_left_out"]


def test_encode_request_sends_seed_as_label_with_change() -> None:
    assert encode(seed=7) == (encode(metadata={"user_id": "seed-7"})[0], ["seed_has_no_effect"])
    assert encode(seed=7, user="u")[0]["metadata"] == {"user_id": "u"}


def test_encode_request_sends_response_format_as_output_format() -> None:
    response_format = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    sent, changes = encode(response_format=response_format, output_config={"effort": "high"})
    assert sent["output_config"] == {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}}
    assert changes == []
    assert encode(response_format={"type": "json_object"})[1] == ["option_left_out"]


def test_encode_request_drops_sampling_that_model_or_thinking_refuses() -> None:
    sampling = {"temperature": 0.3, "top_p": 0.9, "top_k": 5}
    assert encode(**sampling)[0].items() >= sampling.items()
    assert not sampling.keys() & encode(model=MESSAGES_DATA["no_sampling"][0], **sampling)[0].keys()
    sent, changes = encode(thinking={"type": "adaptive"}, **sampling)
    assert sent.keys() & sampling.keys() == {"top_p"}
    assert changes == ["sampling_left_out"] * 2


def test_encode_request_caps_temperature_at_one() -> None:
    sent, changes = encode(temperature=1.5)
    assert (sent["temperature"], changes) == (1, ["temperature_capped"])


def test_encode_request_repeats_container_of_last_answer() -> None:
    messages = [USER, {"role": "assistant", "content": "Hm.", "container": {"id": "c-1", "expires_at": "x"}}, USER]
    assert encode(messages=messages)[0]["container"] == "c-1"


def test_encode_request_defines_called_tools_if_none_are_sent() -> None:
    calls = [
        {"id": f"c{index}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for index, name in enumerate(("get", "put", "get"))
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    history = [USER, {"role": "assistant", "content": None, "tool_calls": calls}, *results, USER]

    sent, changes = encode(messages=history, tool_choice="auto")
    assert [tool["name"] for tool in sent["tools"]] == ["get", "put"]
    assert sent["tool_choice"] == {"type": "none"}
    assert "called_tools_defined" in changes

    sent, changes = encode(messages=history, tools=[TOOL])
    assert [tool["name"] for tool in sent["tools"]] == ["get"]
    assert "called_tools_defined" not in changes
    assert "tools" not in encode()[0]
