import copy
from typing import Any

import pytest

from toolbench.engine.transforms import apply_response, names

FUNCTION_CALL = "assistant_function_call_to_tool_calls"
TO_ARRAY = "assistant_tool_calls_object_to_array"
WRITTEN = "assistant_tool_calls_arguments_json_string_if_hash"
TAGS = "assistant_content_tool_call_tags_to_tool_calls"


def call(arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize(
    ("arguments", "written"),
    [('{"a":1}', '{"a":1}'), ({"a": "ü"}, '{"a":"ü"}'), ([1], "[1]"), (None, ""), (True, "true")],
)
def test_a_legacy_function_call_becomes_the_only_tool_call(arguments: Any, written: str) -> None:
    message = {"content": None, "function_call": {"name": "f", "arguments": arguments}}
    changed, changes = apply_response(message, [FUNCTION_CALL])
    assert changed == {"content": None, "tool_calls": [{**call(written), "id": "call_1"}]}
    assert [c.path for c in changes] == ["$.function_call", "$.tool_calls"]


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [call("{}")], "function_call": {"name": "g", "arguments": "{}"}},
        {"function_call": {"name": " ", "arguments": "{}"}},
        {"function_call": {"arguments": "{}"}},
        {"function_call": "f"},
        {"content": "hi"},
    ],
)
def test_no_usable_function_call_changes_nothing(message: dict[str, Any]) -> None:
    assert apply_response(message, [FUNCTION_CALL]) == (message, ())


def test_an_empty_list_of_calls_gives_way_to_the_function_call() -> None:
    changed, _ = apply_response({"tool_calls": [], "function_call": {"name": "f", "arguments": "{}"}}, [FUNCTION_CALL])
    assert [c["function"]["name"] for c in changed["tool_calls"]] == ["f"]


def test_a_lone_call_becomes_a_list() -> None:
    changed, changes = apply_response({"tool_calls": call("{}")}, [TO_ARRAY])
    assert changed == {"tool_calls": [call("{}")]}
    assert [c.path for c in changes] == ["$.tool_calls"]


def test_arguments_that_are_an_object_or_a_list_become_text() -> None:
    message = {"tool_calls": [call({"b": [1, None]}), call([1]), call("{}"), call(None), "odd"]}
    changed, changes = apply_response(message, [WRITTEN])
    arguments = [c["function"]["arguments"] for c in changed["tool_calls"][:4]]
    assert arguments == ['{"b":[1,null]}', "[1]", "{}", None]
    assert [c.path for c in changes] == [f"$.tool_calls[{n}].function.arguments" for n in (0, 1)]


def test_order_matters_a_lone_call_is_only_written_after_it_became_a_list() -> None:
    lone = {"tool_calls": call({"a": 1})}
    right, _ = apply_response(lone, [TO_ARRAY, WRITTEN])
    wrong, _ = apply_response(lone, [WRITTEN, TO_ARRAY])
    assert right["tool_calls"][0]["function"]["arguments"] == '{"a":1}'
    assert wrong["tool_calls"][0]["function"]["arguments"] == {"a": 1}


def test_tags_in_the_content_become_calls_and_leave_the_text() -> None:
    message = {"content": 'Now. <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>\n'}
    changed, changes = apply_response(message, [TAGS])
    assert changed["content"] == "Now."
    assert changed["tool_calls"] == [{**call('{"a":1}'), "id": "tag_call_1"}]
    assert [c.path for c in changes] == ["$.content", "$.tool_calls"]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "<tool_call>f</tool_call>", "tool_calls": [call("{}")]},
        {"content": "<tool_call>two words here</tool_call>"},
        {"content": [{"type": "text", "text": "<tool_call>f</tool_call>"}]},
        {"content": None},
    ],
)
def test_tags_are_left_alone_beside_calls_or_unreadable(message: dict[str, Any]) -> None:
    assert apply_response(message, [TAGS]) == (message, ())


def test_the_answer_handed_in_is_never_changed() -> None:
    message = {"content": "", "tool_calls": call({"a": {"b": 1}})}
    before = copy.deepcopy(message)
    apply_response(message, names("response"))
    assert message == before


def test_arguments_nested_too_deeply_to_write_are_left_as_they_are() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    message = {"tool_calls": [call({"a": deep})]}
    assert apply_response(message, [WRITTEN]) == (message, ())
    while deep:
        deep = deep.pop()
