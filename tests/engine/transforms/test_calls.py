import json
from typing import Any

import pytest

from toolbench.engine.transforms import apply_calls
from toolbench.engine.types import JsonObject

BLANK = "assistant_tool_calls_arguments_blank_to_empty_object"


def build_call(arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_apply_calls_with_blank_arguments_fills_empty_object(blank: str) -> None:
    calls = [build_call("{}"), build_call(blank)]
    changed, changes = apply_calls(calls, [BLANK])
    assert changed == [build_call("{}"), build_call("{}")]
    assert [(c.path, c.after) for c in changes] == [("$[1].function.arguments", '"{}"')]
    assert calls[1] == build_call(blank)


@pytest.mark.parametrize("arguments", ["{}", "x", None, {}, []])
def test_apply_calls_with_other_arguments_keeps_them(arguments: Any) -> None:
    assert apply_calls([build_call(arguments)], [BLANK]) == ([build_call(arguments)], ())


def build_function_call(name: str, arguments: Any, call_id: str = "c") -> JsonObject:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("as_text", [True, False])
def test_apply_calls_with_parallel_tool_unpacks_listed_calls(as_text: bool) -> None:
    uses = [
        {"recipient_name": "functions.f", "parameters": {"a": 1}},
        {"recipient_name": "g"},
        {"recipient_name": "functions.h", "parameters": '{"b":2}'},
    ]
    listed = {"tool_uses": uses}
    wrapped = build_function_call("multi_tool_use.parallel", json.dumps(listed) if as_text else listed)
    calls, changes = apply_calls([build_function_call("f", "{}", "b"), wrapped], ["multi_tool_use_parallel_to_calls"])
    assert calls == [
        build_function_call("f", "{}", "b"),
        build_function_call("f", '{"a":1}', "c_1"),
        build_function_call("g", "{}", "c_2"),
        build_function_call("h", '{"b":2}', "c_3"),
    ]
    assert changes


@pytest.mark.parametrize("arguments", ["{", '{"tool_uses": [{"parameters": {}}]}', '{"tool_uses": 5}', None, "[]"])
def test_apply_calls_with_unreadable_parallel_list_keeps_call(arguments: Any) -> None:
    wrapped = [build_function_call("multi_tool_use.parallel", arguments)]
    assert apply_calls(wrapped, ["multi_tool_use_parallel_to_calls"]) == (wrapped, ())


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("f<|channel|>commentary", "f"),
        ("functions.f", "f"),
        (" functions.f<|message|>", "f"),
        ("f[ARGS]", "f"),
        ("get.weather", "get.weather"),
        ("<|call|>", "<|call|>"),
    ],
)
def test_apply_calls_removes_tokens_and_namespaces_from_names(name: str, clean: str) -> None:
    (call,), _ = apply_calls([build_function_call(name, "{}")], ["tool_call_names_cleaned"])
    assert call == build_function_call(clean, "{}")
