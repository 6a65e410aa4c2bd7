import copy
from typing import Any

import pytest

from tests.engine.scripted_model import build_answer
from tests.engine.single_turns import parse, prepare
from toolbench.engine.formats import TextCall, render
from toolbench.engine.transforms import TransformContext, apply_response, list_names
from toolbench.engine.transforms.responses import TEXT_CALL_TRANSFORMS

FUNCTION_CALL = "assistant_function_call_to_tool_calls"
TO_ARRAY = "assistant_tool_calls_object_to_array"
TO_JSON_TEXT = "assistant_tool_calls_arguments_json_string_if_hash"
TAGS = "assistant_content_tool_call_tags_to_tool_calls"


def build_call(arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize(
    ("arguments", "written"),
    [('{"a":1}', '{"a":1}'), ({"a": "ü"}, '{"a":"ü"}'), ([1], "[1]"), (None, ""), (True, "true")],
)
def test_legacy_function_call_becomes_the_only_tool_call(arguments: Any, written: str) -> None:
    message = {"content": None, "function_call": {"name": "f", "arguments": arguments}}
    changed, changes = apply_response(message, [FUNCTION_CALL])
    assert changed == {"content": None, "tool_calls": [{**build_call(written), "id": "call_1"}]}
    assert [c.path for c in changes] == ["$.function_call", "$.tool_calls"]


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [build_call("{}")], "function_call": {"name": "g", "arguments": "{}"}},
        {"function_call": {"name": " ", "arguments": "{}"}},
        {"function_call": {"arguments": "{}"}},
        {"function_call": "f"},
        {"content": "hi"},
    ],
)
def test_unusable_function_call_changes_nothing(message: dict[str, Any]) -> None:
    assert apply_response(message, [FUNCTION_CALL]) == (message, ())


def test_function_call_replaces_empty_list_of_calls() -> None:
    changed, _ = apply_response({"tool_calls": [], "function_call": {"name": "f", "arguments": "{}"}}, [FUNCTION_CALL])
    assert [c["function"]["name"] for c in changed["tool_calls"]] == ["f"]


def test_tool_calls_object_becomes_a_list() -> None:
    changed, changes = apply_response({"tool_calls": build_call("{}")}, [TO_ARRAY])
    assert changed == {"tool_calls": [build_call("{}")]}
    assert [c.path for c in changes] == ["$.tool_calls"]


def test_object_or_list_arguments_become_json_text() -> None:
    message = {"tool_calls": [build_call({"b": [1, None]}), build_call([1]), build_call("{}"), build_call(None), "odd"]}
    changed, changes = apply_response(message, [TO_JSON_TEXT])
    arguments = [c["function"]["arguments"] for c in changed["tool_calls"][:4]]
    assert arguments == ['{"b":[1,null]}', "[1]", "{}", None]
    assert [c.path for c in changes] == [f"$.tool_calls[{n}].function.arguments" for n in (0, 1)]


def test_arguments_of_single_call_convert_only_after_list_transform() -> None:
    message = {"tool_calls": build_call({"a": 1})}
    list_first, _ = apply_response(message, [TO_ARRAY, TO_JSON_TEXT])
    text_first, _ = apply_response(message, [TO_JSON_TEXT, TO_ARRAY])
    assert list_first["tool_calls"][0]["function"]["arguments"] == '{"a":1}'
    assert text_first["tool_calls"][0]["function"]["arguments"] == {"a": 1}


def test_tags_in_content_become_calls_and_leave_the_text() -> None:
    message = {"content": 'Now. <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>\n'}
    changed, changes = apply_response(message, [TAGS])
    assert changed["content"] == "Now."
    assert changed["tool_calls"] == [{**build_call('{"a":1}'), "id": "tag_call_1"}]
    assert [c.path for c in changes] == ["$.content", "$.tool_calls"]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "<tool_call>f</tool_call>", "tool_calls": [build_call("{}")]},
        {"content": "<tool_call>two words here</tool_call>"},
        {"content": [{"type": "text", "text": "<tool_call>f</tool_call>"}]},
        {"content": None},
    ],
)
def test_tags_with_other_calls_or_unreadable_stay_in_content(message: dict[str, Any]) -> None:
    assert apply_response(message, [TAGS]) == (message, ())


def test_apply_response_leaves_its_argument_unchanged() -> None:
    message = {"content": "", "tool_calls": build_call({"a": {"b": 1}})}
    before = copy.deepcopy(message)
    apply_response(message, list_names("response"))
    assert message == before


def test_too_deeply_nested_arguments_are_kept() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    message = {"tool_calls": [build_call({"a": deep})]}
    assert apply_response(message, [TO_JSON_TEXT]) == (message, ())
    while deep:
        deep = deep.pop()


WEATHER = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
CONTEXT = TransformContext(tools=(WEATHER,))
ONE_CALL = [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}]


@pytest.mark.parametrize(
    "name",
    ["hermes", "llama3_json", "llama3_python_tag", "mistral_v2", "deepseek_v31", "qwen3_coder", "glm45", "pythonic"],
)
def test_calls_in_any_text_format_become_tool_calls(name: str) -> None:
    text = render([TextCall("get_weather", {"city": "Oslo"})], format=name)
    message, changes = apply_response({"role": "assistant", "content": text}, ["tool_calls_from_text"], CONTEXT)
    assert message == {"role": "assistant", "content": "", "tool_calls": ONE_CALL}
    assert {change.path for change in changes} == {"$.content", "$.tool_calls"}


def test_calls_in_another_than_the_given_text_format_stay_text() -> None:
    text = render([TextCall("get_weather", {"city": "Oslo"})], format="glm45")
    context = TransformContext(tools=(WEATHER,), text_format="deepseek_v3")
    assert apply_response({"content": text}, ["tool_calls_from_text"], context) == ({"content": text}, ())


def test_text_and_reasoning_around_a_call_are_separated() -> None:
    text = "<think>Hm.</think>\nLet me see.\n" + render([TextCall("get_weather", {"city": "Oslo"})], format="hermes")
    message, _ = apply_response({"content": text}, ["tool_calls_from_text"], CONTEXT)
    assert message == {"content": "Let me see.", "reasoning_content": "Hm.", "tool_calls": ONE_CALL}


def test_reasoning_in_the_text_follows_the_one_of_the_message() -> None:
    text = "<think>Hm.</think>\n" + render([TextCall("get_weather", {"city": "Oslo"})], format="hermes")
    received = {"content": text, "reasoning_content": "The user asks."}
    message, _ = apply_response(received, ["tool_calls_from_text"], CONTEXT)
    assert message == {"content": "", "reasoning_content": "The user asks.\nHm.", "tool_calls": ONE_CALL}


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Sunny."},
        {"content": '{"name": "unknown", "arguments": {}}'},
        {"content": '<tool_call>\n{"name": "get_weather", "argu'},
        {"content": "<tool_call>f</tool_call>", "tool_calls": [build_call("{}")]},
        {"content": None},
    ],
)
def test_content_without_offered_call_stays_text(message: dict[str, Any]) -> None:
    assert apply_response(message, ["tool_calls_from_text"], CONTEXT) == (message, ())


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_calls_in_reasoning_of_answer_without_text_become_tool_calls(key: str) -> None:
    reasoning = "Look. " + render([TextCall("get_weather", {"city": "Oslo"})], format="hermes")
    message, _ = apply_response({"content": "", key: reasoning}, ["tool_calls_from_reasoning"], CONTEXT)
    assert message == {"content": "", key: "Look.", "tool_calls": ONE_CALL}
    with_text = {"content": "Sunny.", key: reasoning}
    assert apply_response(with_text, ["tool_calls_from_reasoning"], CONTEXT) == (with_text, ())


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("text_json", '```json\n{"name": "state_get", "arguments": {}}\n```'),
        ("constrained", '{"name": "state_get", "arguments": {}}'),
        ("template", '<tool_call>{"name": "state_get", "arguments": {}}</tool_call>'),
    ],
)
def test_transforms_take_no_calls_from_methods_that_read_text(method: str, text: str) -> None:
    setup = prepare(method=method, text_format="hermes", response_transforms=sorted(TEXT_CALL_TRANSFORMS))
    turn = parse(setup, build_answer(text))
    assert [call.name for call in turn.calls] == ["state_get"]
