import copy
import json
from typing import Any

import pytest

from toolbench.engine.errors import PlanError
from toolbench.engine.methods.registry import CallMethod, build_method
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject, Message, ToolCall

WEATHER = ToolDefinition(
    "get_weather",
    "Weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TOOLS = (WEATHER,)
TOOLS_JSON = [WEATHER.to_openai()]
BODY: JsonObject = {
    "model": "m",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Oslo?"}],
}
CALL = {"id": "e1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
EXAMPLE: list[Message] = [
    {"role": "user", "content": "Rome?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "e1", "content": '{"ok":true}'},
    {"role": "assistant", "content": "Sunny."},
]
ALL = [
    *(build_method(Policy(method=method)) for method in ("native", "text_json", "constrained")),
    build_method(Policy(method="constrained", constraint="grammar")),
]
IN_WORDS = ALL[1:]


def name_of(call_method: CallMethod) -> str:
    return f"{call_method.method}-{getattr(call_method, 'constraint', '')}"


@pytest.mark.parametrize("call_method", ALL, ids=name_of)
def test_shaping_changes_nothing_that_was_handed_in(call_method: CallMethod) -> None:
    body, tools = copy.deepcopy(BODY), copy.deepcopy(TOOLS_JSON)
    call_method.prepare_body(body, TOOLS, tools, "auto")
    assert (body, tools) == (BODY, TOOLS_JSON)


@pytest.mark.parametrize("call_method", ALL, ids=name_of)
def test_without_tools_the_body_goes_out_as_it_is(call_method: CallMethod) -> None:
    assert call_method.prepare_body(BODY, (), [], "auto") == BODY


def test_native_sends_tools_and_the_choice() -> None:
    assert ALL[0].prepare_body(BODY, TOOLS, TOOLS_JSON, "auto") == {**BODY, "tools": TOOLS_JSON, "tool_choice": "auto"}


def test_native_and_text_prompts_are_never_mixed_in_one_request() -> None:
    native, *in_words = (
        json.dumps(
            call_method.prepare_body(
                {**BODY, "messages": call_method.render_history([*BODY["messages"], *EXAMPLE])},
                TOOLS,
                TOOLS_JSON,
                "auto",
            )
        ).encode()
        for call_method in ALL
    )
    assert b"You can use these tools" not in native
    assert b"```" not in native
    for sent in in_words:
        assert b"You can use these tools" in sent
        for key in (b'"tools"', b'"tool_choice"', b'"tool_calls"', b'"role": "tool"', b'"tool_call_id"'):
            assert key not in sent


@pytest.mark.parametrize("call_method", IN_WORDS, ids=name_of)
def test_asking_in_words_joins_the_system_message_or_brings_its_own(call_method: CallMethod) -> None:
    joined = call_method.prepare_body(BODY, TOOLS, TOOLS_JSON, "auto")["messages"]
    assert joined[0]["content"].startswith("Be brief.\n\nYou can use these tools")
    alone = call_method.prepare_body({"messages": BODY["messages"][1:]}, TOOLS, TOOLS_JSON, "auto")["messages"]
    assert [m["role"] for m in alone] == ["system", "user"]
    parts = [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}]
    assert len(call_method.prepare_body({"messages": parts}, TOOLS, TOOLS_JSON, "auto")["messages"][0]["content"]) == 2


@pytest.mark.parametrize("call_method", IN_WORDS, ids=name_of)
def test_the_choice_none_asks_for_no_call(call_method: CallMethod) -> None:
    assert call_method.prepare_body(BODY, TOOLS, TOOLS_JSON, "none") == BODY


def test_the_example_in_the_prompt_is_a_real_call_of_the_first_tool() -> None:
    prompt = ALL[1].prepare_body(BODY, TOOLS, TOOLS_JSON, "auto")["messages"][0]["content"]
    assert prompt.count("```json") == 1
    assert '{"name": "get_weather", "arguments": {"city": "..."}}' in prompt


def test_native_reads_calls_untouched() -> None:
    call = {"id": "", "index": 0, "function": {"name": " f ", "arguments": {"a": 1}}, "extra_content": {"x": 1}}
    read = ALL[0].parse_answer({"content": "Looking.", "tool_calls": [call, "odd"]}, TOOLS)
    assert (read.calls, read.text, read.method_used, read.findings) == ((call,), "Looking.", "tool_use", ())


@pytest.mark.parametrize("calls", [{"id": "1", "function": {"name": "f"}}])
def test_native_reads_a_lone_call(calls: JsonObject) -> None:
    assert ALL[0].parse_answer({"content": None, "tool_calls": calls}, TOOLS).calls == (calls,)


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "function", "name": "get_weather", "parameters": {"city": "Oslo"}}',
        '{"function": {"name": "get_weather", "arguments": {}}}',
        '{"tool_calls": [{"function": {"name": "get_weather", "arguments": "{}"}}]}',
        '[{"name": "get_weather", "arguments": {}}]',
        'I call:\n```json\n{"tool": "get_weather", "tool_input": {}}\n```',
        '{"name": "get_weather", "arguments": {"city": "Os',
        '<tool_call>{"name": "get_weather"}',
        "[TOOL_CALLS][...]",
        'get_weather(city="Oslo")',
        '[get_weather(city="Oslo")]',
    ],
)
def test_a_call_written_into_native_text_is_reported_and_never_runs(text: str) -> None:
    read = ALL[0].parse_answer({"content": text}, TOOLS)
    assert (read.calls, read.text, read.method_used, read.has_unexecuted_call) == ((), text, "text", True)
    assert [f.code for f in read.findings] == ["call_in_text"]


@pytest.mark.parametrize(
    "text", ["Done.", "", "I would use get_weather for that.", '{"name": "Ada", "arguments": {}}', "```py\nx={}\n```"]
)
def test_ordinary_text_is_no_call(text: str) -> None:
    read = ALL[0].parse_answer({"content": text}, TOOLS)
    assert (read.text, read.findings, read.has_unexecuted_call) == (text, (), False)


def test_native_history_keeps_only_the_kept_calls_and_every_unknown_field() -> None:
    message = {"role": "assistant", "content": "", "reasoning_content": "r", "tool_calls": [CALL, {**CALL, "id": "e2"}]}
    assert ALL[0].build_assistant_message(message, [CALL]) == {**message, "tool_calls": [CALL]}
    assert "tool_calls" not in ALL[0].build_assistant_message(message, [])


def test_native_results_and_examples_are_in_openais_own_shape() -> None:
    result = ALL[0].build_result_messages(ToolCall("c1", "get_weather"), "{}")
    assert result == [{"role": "tool", "tool_call_id": "c1", "content": "{}"}]
    assert ALL[0].render_history(EXAMPLE) == EXAMPLE


@pytest.mark.parametrize("call_method", IN_WORDS, ids=name_of)
def test_results_in_words_come_from_the_user(call_method: CallMethod) -> None:
    told = call_method.build_result_messages(ToolCall("c1", "get_weather"), "has {id} and {content}")
    assert told == [{"role": "user", "content": "Result of get_weather (c1):\nhas {id} and {content}"}]


@pytest.mark.parametrize(
    ("call_method", "call", "final"),
    [
        (IN_WORDS[0], '```json\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n```', "Sunny."),
        (IN_WORDS[1], '{"name": "get_weather", "arguments": {"city": "Rome"}}', '{"final":"Sunny."}'),
    ],
    ids=["text_json", "constrained"],
)
def test_examples_are_told_in_the_methods_own_form_and_read_back(
    call_method: CallMethod, call: str, final: str
) -> None:
    told = call_method.render_history(EXAMPLE)
    assert told == [
        {"role": "user", "content": "Rome?"},
        {"role": "assistant", "content": call},
        {"role": "user", "content": 'Result of get_weather (e1):\n{"ok":true}'},
        {"role": "assistant", "content": final},
    ]
    (read_back,) = call_method.parse_answer(told[1], TOOLS).calls
    assert json.loads(read_back["function"]["arguments"]) == {"city": "Rome"}
    assert call_method.parse_answer(told[3], TOOLS).text == "Sunny."


@pytest.mark.parametrize("call_method", IN_WORDS, ids=name_of)
def test_parallel_calls_of_an_example_are_told_one_by_one(call_method: CallMethod) -> None:
    second = {**CALL, "id": "e2"}
    messages: list[Message] = [
        {"role": "assistant", "content": "", "tool_calls": [CALL, second]},
        {"role": "tool", "tool_call_id": "e1", "content": "one"},
        {"role": "tool", "tool_call_id": "e2", "content": "two"},
    ]
    assert [m["role"] for m in call_method.render_history(messages)] == ["assistant", "user", "assistant", "user"]


@pytest.mark.parametrize("calls", [[{"function": {"name": "f"}}], [{"id": 1, "function": "x"}], {"id": "1"}, ["x"]])
@pytest.mark.parametrize("call_method", ALL)
def test_odd_calls_in_a_history_never_raise(call_method: CallMethod, calls: Any) -> None:
    history = [{"role": "assistant", "tool_calls": calls}, {"role": "tool", "content": "1"}]
    json.dumps(call_method.render_history(history))


@pytest.mark.parametrize("call_method", IN_WORDS, ids=name_of)
def test_history_in_words_keeps_the_models_own_text(call_method: CallMethod) -> None:
    message: dict[str, Any] = {"role": "assistant", "content": '{"a": 1}', "tool_calls": [CALL]}
    assert call_method.build_assistant_message(message, [CALL]) == {"role": "assistant", "content": '{"a": 1}'}


@pytest.mark.parametrize("call_method", IN_WORDS, ids=name_of)
def test_native_calls_that_nobody_asked_for_are_reported_and_never_run(call_method: CallMethod) -> None:
    read = call_method.parse_answer({"content": "", "tool_calls": [CALL]}, TOOLS)
    assert (read.calls, read.has_unexecuted_call, [f.code for f in read.findings]) == ((), True, ["unasked_tool_calls"])


@pytest.mark.parametrize(("method", "constraint"), [("constrained", "xml"), ("", "")])
def test_a_way_of_asking_nobody_knows_is_refused(method: str, constraint: str) -> None:
    with pytest.raises(PlanError):
        build_method(Policy(method=method, constraint=constraint))
