from typing import Any

import pytest

from toolbench.engine.transforms import apply_request, list_names
from toolbench.engine.types import JsonObject

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def build_call(name: str, call_id: str) -> JsonObject:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def build_result(call_id: str, content: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


BODY: JsonObject = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Both.", "tool_calls": [build_call("f", "1"), build_call("g", "2")]},
        build_result("1", "one"),
        build_result("2", "two"),
        {"role": "assistant", "content": None, "tool_calls": [build_call("f", "1")]},
        build_result("1", "three"),
    ],
    "tools": [TOOL],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
}


def test_legacy_request_has_functions_and_one_call_per_answer() -> None:
    body, changes = apply_request(BODY, ["tools_to_functions"])
    function = {name: {"name": name, "arguments": "{}"} for name in "fg"}
    assert body == {
        "model": "m",
        "messages": [
            BODY["messages"][0],
            {"role": "assistant", "content": "Both.", "function_call": function["f"]},
            {"role": "function", "name": "f", "content": "one"},
            {"role": "assistant", "content": None, "function_call": function["g"]},
            {"role": "function", "name": "g", "content": "two"},
            {"role": "assistant", "content": None, "function_call": function["f"]},
            {"role": "function", "name": "f", "content": "three"},
        ],
        "functions": [TOOL["function"]],
        "function_call": "auto",
    }
    assert {change.name for change in changes} == {"tools_to_functions"}


@pytest.mark.parametrize("calls", [[{"id": "1"}], ["x"], {"id": "1", "function": "x"}, [{"id": {}}]])
def test_legacy_request_accepts_malformed_calls(calls: Any) -> None:
    apply_request({**BODY, "messages": [{"role": "assistant", "tool_calls": calls}]}, ["tools_to_functions"])


def test_legacy_request_pairs_result_and_call_without_ids() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "one"}]
    body, _ = apply_request({**BODY, "messages": messages}, ["tools_to_functions"])
    assert body["messages"][1] == {"role": "function", "name": "f", "content": "one"}


@pytest.mark.parametrize(
    ("choice", "function_call"),
    [("none", "none"), ("required", "auto"), ({"type": "function", "function": {"name": "f"}}, {"name": "f"})],
)
def test_legacy_request_converts_tool_choice(choice: Any, function_call: Any) -> None:
    assert apply_request({**BODY, "tool_choice": choice}, ["tools_to_functions"])[0]["function_call"] == function_call


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("max_tokens_to_max_completion_tokens", {"max_tokens": 9}, {"max_completion_tokens": 9}),
        (
            "max_tokens_to_max_completion_tokens",
            {"max_tokens": 9, "max_completion_tokens": 5},
            {"max_completion_tokens": 5},
        ),
        ("max_completion_tokens_to_max_tokens", {"max_completion_tokens": 9}, {"max_tokens": 9}),
        (
            "reasoning_effort_to_reasoning_object",
            {"reasoning_effort": "low", "reasoning": {"exclude": True}},
            {"reasoning": {"exclude": True, "effort": "low"}},
        ),
        ("reasoning_object_to_reasoning_effort", {"reasoning": {"effort": "low"}}, {"reasoning_effort": "low"}),
        ("tool_choice_forced_to_auto", {"tool_choice": "required"}, {"tool_choice": "auto"}),
        ("tool_choice_forced_to_auto", {"tool_choice": {"type": "function"}}, {"tool_choice": "auto"}),
    ],
)
def test_apply_request_renames_key(name: str, before: JsonObject, after: JsonObject) -> None:
    body, changes = apply_request({"model": "m", **before}, [name])
    assert body == {"model": "m", **after}
    assert changes


@pytest.mark.parametrize("name", list_names("request"))
@pytest.mark.parametrize(
    "body", [{"model": "m"}, {"messages": [], "reasoning": {"max_tokens": 5}, "tool_choice": "none"}]
)
def test_apply_request_without_the_key_keeps_body(name: str, body: JsonObject) -> None:
    assert apply_request(body, [name]) == (body, ())
