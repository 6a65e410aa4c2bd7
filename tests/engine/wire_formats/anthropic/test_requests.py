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


def encoded(**body: Any) -> tuple[JsonObject, list[str]]:
    """The body as it travels, good by the SDK's types, and the names of what was changed."""
    given = {"model": "claude-test", "messages": [USER], **body}
    sent, changes = encode_request(given)
    assert parse_request(sent) == sent
    assert {change.kind for change in changes} <= {"wire"}
    return sent, [change.name for change in changes]


def chosen(**body: Any) -> Any:
    return encoded(tools=[TOOL], **body)[0].get("tool_choice")


def test_the_types_refuse_what_the_api_would() -> None:
    with pytest.raises(ValidationError):
        parse_request({"model": "m", "messages": [USER]})
    assert parse_request({"model": "m", "messages": [], "max_tokens": 1, "n": 2}) == {
        "model": "m",
        "messages": [],
        "max_tokens": 1,
    }


def test_system_texts_stand_at_the_top_joined_by_blank_lines() -> None:
    sent, _ = encoded(messages=[{"role": "system", "content": "One."}, {"role": "developer", "content": "Two."}, USER])
    assert sent["system"] == "One.\n\nTwo."
    assert [message["role"] for message in sent["messages"]] == ["user"]
    assert "system" not in encoded(messages=[{"role": "system", "content": " "}, USER])[0]


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({}, MESSAGES_DATA["max_tokens"]),
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 8}, 8),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, MESSAGES_DATA["max_tokens"] + 2048),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 3000}, 3000),
    ],
)
def test_a_limit_is_always_sent(asked: JsonObject, sent: int) -> None:
    assert encoded(**asked)[0]["max_tokens"] == sent


def test_functions_become_tools_with_an_input_schema() -> None:
    strict = {"type": "function", "function": {**GET, "strict": True}, "cache_control": {"type": "ephemeral"}}
    own = {"type": "bash_20250124", "name": "bash"}
    sent, _ = encoded(tools=[TOOL, strict, own, {"type": "function", "function": {"name": "bare"}}])
    get = {"name": "get", "description": "Reads.", "input_schema": GET["parameters"]}
    marked = {**get, "strict": True, "cache_control": {"type": "ephemeral"}}
    assert sent["tools"] == [get, marked, own, {"name": "bare", "input_schema": {"type": "object"}}]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, None),
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ("none", {"type": "none"}),
        ({"type": "function", "function": {"name": "get"}}, {"type": "tool", "name": "get"}),
        ({"type": "any"}, {"type": "any"}),
    ],
)
def test_each_tool_choice_has_its_word(choice: Any, sent: Any) -> None:
    assert chosen(tool_choice=choice) == sent


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", {"type": "any", "disable_parallel_tool_use": True}),
        ("none", {"type": "none"}),
    ],
)
def test_one_call_at_a_time_is_said_in_the_choice_but_not_in_none(choice: Any, sent: Any) -> None:
    assert chosen(tool_choice=choice, parallel_tool_calls=False) == sent


@pytest.mark.parametrize(
    "asked",
    [{"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"model": f"{MESSAGES_DATA['no_forcing'][0]}-20270101"}],
)
def test_a_forced_call_where_none_can_be_forced_is_asked_for_and_said(asked: JsonObject) -> None:
    for choice in ("required", {"type": "function", "function": {"name": "get"}}):
        sent, changes = encoded(tools=[TOOL], tool_choice=choice, **asked)
        assert sent["tool_choice"] == {"type": "auto"}
        assert "forced_choice_to_auto" in changes


def test_adaptive_thinking_goes_with_a_forced_call() -> None:
    assert chosen(tool_choice="required", thinking={"type": "adaptive"}) == {"type": "any"}


def test_without_tools_neither_choice_nor_flag_is_sent() -> None:
    sent, changes = encoded(tool_choice="required", parallel_tool_calls=False)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & sent.keys()
    assert changes == []


def test_options_of_other_apis_are_left_out_by_name() -> None:
    sent, changes = encoded(n=1, min_p=0.1, grammar="x", stream_options={"include_usage": True}, stream=True)
    assert sent.keys() == {"model", "max_tokens", "messages", "stream"}
    assert changes == ["option_left_out"] * 3


def test_options_that_have_another_name_there_are_renamed() -> None:
    sent, changes = encoded(stop="END", user="u-1", reasoning_effort="minimal", top_k=4, service_tier="auto")
    assert sent["stop_sequences"] == ["END"]
    assert sent["metadata"] == {"user_id": "u-1"}
    assert sent["output_config"] == {"effort": "low"}
    assert (sent["top_k"], sent["service_tier"], changes) == (4, "auto", [])
    assert encoded(reasoning_effort="none")[1] == ["option_left_out"]


def test_a_seed_is_a_label_and_the_change_says_so() -> None:
    assert encoded(seed=7) == (encoded(metadata={"user_id": "seed-7"})[0], ["seed_has_no_effect"])
    assert encoded(seed=7, user="u")[0]["metadata"] == {"user_id": "u"}


def test_a_schema_for_the_answer_travels_as_output_format() -> None:
    asked = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    sent, changes = encoded(response_format=asked, output_config={"effort": "high"})
    assert sent["output_config"] == {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}}
    assert changes == []
    assert encoded(response_format={"type": "json_object"})[1] == ["option_left_out"]


def test_sampling_that_the_model_or_its_thinking_refuses_is_left_out() -> None:
    sampling = {"temperature": 0.3, "top_p": 0.9, "top_k": 5}
    assert encoded(**sampling)[0].items() >= sampling.items()
    assert not sampling.keys() & encoded(model=MESSAGES_DATA["no_sampling"][0], **sampling)[0].keys()
    sent, changes = encoded(thinking={"type": "adaptive"}, **sampling)
    assert sent.keys() & sampling.keys() == {"top_p"}
    assert changes == ["sampling_left_out"] * 2


def test_a_temperature_above_one_is_capped() -> None:
    sent, changes = encoded(temperature=1.5)
    assert (sent["temperature"], changes) == (1, ["temperature_capped"])


def test_the_container_of_the_last_answer_is_named_again() -> None:
    told = [USER, {"role": "assistant", "content": "Hm.", "container": {"id": "c-1", "expires_at": "x"}}, USER]
    assert encoded(messages=told)[0]["container"] == "c-1"


def test_tools_that_were_called_are_defined_where_none_are_sent() -> None:
    calls = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for at, name in enumerate(("get", "put", "get"))
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    history = [USER, {"role": "assistant", "content": None, "tool_calls": calls}, *results, USER]

    sent, changes = encoded(messages=history, tool_choice="auto")
    assert [tool["name"] for tool in sent["tools"]] == ["get", "put"]
    assert sent["tool_choice"] == {"type": "none"}
    assert "called_tools_defined" in changes

    sent, changes = encoded(messages=history, tools=[TOOL])
    assert [tool["name"] for tool in sent["tools"]] == ["get"]
    assert "called_tools_defined" not in changes
    assert "tools" not in encoded()[0]
