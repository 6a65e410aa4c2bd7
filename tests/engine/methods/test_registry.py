import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from toolbench.engine.errors import PlanError
from toolbench.engine.methods.interface import CallMethod
from toolbench.engine.methods.registry import build_method
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
METHODS = [
    *(build_method(Policy(method=method)) for method in ("native", "text_json", "constrained")),
    build_method(Policy(method="constrained", constraint="grammar")),
]
TEXT_METHODS = METHODS[1:]


def get_test_id(call_method: CallMethod) -> str:
    return f"{call_method.method}-{getattr(call_method, 'constraint', '')}"


@pytest.mark.parametrize("call_method", METHODS, ids=get_test_id)
def test_prepare_body_leaves_its_arguments_unchanged(call_method: CallMethod) -> None:
    body, tools = copy.deepcopy(BODY), copy.deepcopy(TOOLS_JSON)
    call_method.prepare_body(body, tools, "auto")
    assert (body, tools) == (BODY, TOOLS_JSON)


@pytest.mark.parametrize("call_method", METHODS, ids=get_test_id)
def test_prepare_body_without_tools_returns_equal_body(call_method: CallMethod) -> None:
    assert call_method.prepare_body(BODY, [], "auto") == BODY


def test_native_body_has_tools_and_tool_choice() -> None:
    assert METHODS[0].prepare_body(BODY, TOOLS_JSON, "auto") == {
        **BODY,
        "tools": TOOLS_JSON,
        "tool_choice": "auto",
    }


def test_native_and_text_prompts_are_never_mixed_in_one_request() -> None:
    native, *text_requests = (
        json.dumps(
            call_method.prepare_body(
                {**BODY, "messages": call_method.render_history([*BODY["messages"], *EXAMPLE])},
                TOOLS_JSON,
                "auto",
            )
        ).encode()
        for call_method in METHODS
    )
    assert b"You can use these tools" not in native
    assert b"```" not in native
    for request in text_requests:
        assert b"You can use these tools" in request
        for key in (b'"tools"', b'"tool_choice"', b'"tool_calls"', b'"role": "tool"', b'"tool_call_id"'):
            assert key not in request


@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_instruction_joins_or_adds_system_message(call_method: CallMethod) -> None:
    joined = call_method.prepare_body(BODY, TOOLS_JSON, "auto")["messages"]
    assert joined[0]["content"].startswith("Be brief.\n\nYou can use these tools")
    alone = call_method.prepare_body({"messages": BODY["messages"][1:]}, TOOLS_JSON, "auto")["messages"]
    assert [m["role"] for m in alone] == ["system", "user"]
    multipart = [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}]
    assert len(call_method.prepare_body({"messages": multipart}, TOOLS_JSON, "auto")["messages"][0]["content"]) == 2


@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_with_tool_choice_none_sends_no_instruction(call_method: CallMethod) -> None:
    assert call_method.prepare_body(BODY, TOOLS_JSON, "none") == BODY


def test_instruction_example_calls_the_first_tool() -> None:
    prompt = METHODS[1].prepare_body(BODY, TOOLS_JSON, "auto")["messages"][0]["content"]
    assert prompt.count("```json") == 1
    assert '{"name": "get_weather", "arguments": {"city": "..."}}' in prompt


def test_native_method_keeps_calls_unchanged() -> None:
    call = {"id": "", "index": 0, "function": {"name": " f ", "arguments": {"a": 1}}, "extra_content": {"x": 1}}
    parsed = METHODS[0].parse_answer({"content": "Looking.", "tool_calls": [call, "odd"]}, TOOLS)
    assert (parsed.calls, parsed.text, parsed.method_used, parsed.findings) == ((call,), "Looking.", "tool_use", ())


@pytest.mark.parametrize("calls", [{"id": "1", "function": {"name": "f"}}])
def test_native_method_reads_single_call_object(calls: JsonObject) -> None:
    assert METHODS[0].parse_answer({"content": None, "tool_calls": calls}, TOOLS).calls == (calls,)


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
def test_native_method_reports_call_in_text_without_executing_it(text: str) -> None:
    parsed = METHODS[0].parse_answer({"content": text}, TOOLS)
    assert (parsed.calls, parsed.text, parsed.method_used, parsed.has_unexecuted_call) == ((), text, "text", True)
    assert [f.code for f in parsed.findings] == ["call_in_text"]


@pytest.mark.parametrize(
    "text", ["Done.", "", "I would use get_weather for that.", '{"name": "Ada", "arguments": {}}', "```py\nx={}\n```"]
)
def test_native_method_treats_other_text_as_answer(text: str) -> None:
    parsed = METHODS[0].parse_answer({"content": text}, TOOLS)
    assert (parsed.text, parsed.findings, parsed.has_unexecuted_call) == (text, (), False)


def test_native_message_has_kept_calls_and_unknown_fields() -> None:
    message = {"role": "assistant", "content": "", "reasoning_content": "r", "tool_calls": [CALL, {**CALL, "id": "e2"}]}
    assert METHODS[0].build_assistant_message(message, [CALL]) == {**message, "tool_calls": [CALL]}
    assert "tool_calls" not in METHODS[0].build_assistant_message(message, [])


def test_native_history_and_results_are_in_openai_format() -> None:
    result = METHODS[0].build_result_messages(ToolCall("c1", "get_weather"), "{}")
    assert result == [{"role": "tool", "tool_call_id": "c1", "content": "{}"}]
    assert METHODS[0].render_history(EXAMPLE) == EXAMPLE


@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_sends_results_as_user_messages(call_method: CallMethod) -> None:
    messages = call_method.build_result_messages(ToolCall("c1", "get_weather"), "has {id} and {content}")
    assert messages == [{"role": "user", "content": "Result of get_weather (c1):\nhas {id} and {content}"}]


@pytest.mark.parametrize(
    ("call_method", "call", "final"),
    [
        (TEXT_METHODS[0], '```json\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n```', "Sunny."),
        (TEXT_METHODS[1], '{"name": "get_weather", "arguments": {"city": "Rome"}}', '{"final":"Sunny."}'),
    ],
    ids=["text_json", "constrained"],
)
def test_text_method_renders_examples_that_it_can_read(call_method: CallMethod, call: str, final: str) -> None:
    messages = call_method.render_history(EXAMPLE)
    assert messages == [
        {"role": "user", "content": "Rome?"},
        {"role": "assistant", "content": call},
        {"role": "user", "content": 'Result of get_weather (e1):\n{"ok":true}'},
        {"role": "assistant", "content": final},
    ]
    (read_back,) = call_method.parse_answer(messages[1], TOOLS).calls
    assert json.loads(read_back["function"]["arguments"]) == {"city": "Rome"}
    assert call_method.parse_answer(messages[3], TOOLS).text == "Sunny."


@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_renders_blank_arguments_as_an_empty_object(call_method: CallMethod) -> None:
    call = {**CALL, "function": {"name": "get_weather", "arguments": " "}}
    (rendered,) = call_method.render_history([{"role": "assistant", "tool_calls": [call]}])
    assert json.loads(call_method.parse_answer(rendered, TOOLS).calls[0]["function"]["arguments"]) == {}


@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_renders_parallel_calls_of_example_one_by_one(call_method: CallMethod) -> None:
    second = {**CALL, "id": "e2"}
    messages: list[Message] = [
        {"role": "assistant", "content": "", "tool_calls": [CALL, second]},
        {"role": "tool", "tool_call_id": "e1", "content": "one"},
        {"role": "tool", "tool_call_id": "e2", "content": "two"},
    ]
    assert [m["role"] for m in call_method.render_history(messages)] == ["assistant", "user", "assistant", "user"]


@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_pairs_results_of_repeated_ids_with_their_calls(call_method: CallMethod) -> None:
    turn: list[Message] = [{"role": "assistant", "content": "", "tool_calls": [CALL, CALL]}]
    messages = [message for city in ("Rome", "Oslo") for message in (*turn, build_result(city), build_result("late"))]
    contents = [m["content"] for m in call_method.render_history(messages) if m["role"] == "user"]
    assert contents == [f"Result of get_weather (e1):\n{text}" for text in ("Rome", "late", "Oslo", "late")]


@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_keeps_results_of_calls_in_several_messages(call_method: CallMethod) -> None:
    calls: list[Message] = [{"role": "assistant", "tool_calls": [{**CALL, "id": name}]} for name in ("e1", "e2")]
    unanswered = calls[0]
    messages = [unanswered, *calls, build_result("a"), build_result("b", "e2"), calls[0], build_result("c")]
    rendered = call_method.render_history(messages)
    assert [m["role"] for m in rendered] == ["assistant", *["assistant", "user"] * 3]
    contents = [m["content"] for m in rendered if m["role"] == "user"]
    assert contents == [f"Result of get_weather ({name}" for name in ("e1):\na", "e2):\nb", "e1):\nc")]


@pytest.mark.parametrize("no_id", [{}, {"tool_call_id": None}, {"tool_call_id": ""}], ids=["missing", "null", "blank"])
@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_pairs_result_and_call_without_id(call_method: CallMethod, no_id: JsonObject) -> None:
    call = {name: value for name, value in CALL.items() if name != "id"}
    messages = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", **no_id, "content": "4 degrees"}]
    rendered = call_method.render_history(messages)
    assert [message["content"] for message in rendered[1:]] == ["Result of get_weather ():\n4 degrees"]


class CountingHistory(list[Message]):
    """History that counts how often a message was read."""

    read_count = 0

    def __iter__(self) -> Iterator[Message]:
        for message in super().__iter__():
            self.read_count += 1
            yield message

    def __getitem__(self, index: Any) -> Any:
        self.read_count += 1
        return super().__getitem__(index)


@pytest.mark.parametrize("turn", [("call", "result"), ("call",), ("call", "user")], ids="-".join)
@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_reads_long_history_in_linear_steps(call_method: CallMethod, turn: tuple[str, ...]) -> None:
    by_name: dict[str, Message] = {
        "call": {"role": "assistant", "tool_calls": [CALL]}, "result": build_result("a"), "user": EXAMPLE[0]
    }  # fmt: skip
    history = CountingHistory([by_name[name] for name in turn] * 100)
    call_method.render_history(history)
    assert history.read_count <= 3 * len(history)


def build_result(text: str, call_id: str = "e1") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_renders_text_of_content_parts(call_method: CallMethod) -> None:
    def list_contents(content: Any) -> list[Any]:
        history = [
            {"role": "assistant", "tool_calls": [CALL]},
            build_result(content),
            {**EXAMPLE[3], "content": content},
        ]
        return [message["content"] for message in call_method.render_history(history)]

    assert list_contents([{"type": "text", "text": "su"}, {"type": "text", "text": "nny"}]) == list_contents("sunny")


@pytest.mark.parametrize("calls", [[{"function": {"name": "f"}}], [{"id": 1, "function": "x"}], {"id": "1"}, ["x"]])
@pytest.mark.parametrize("call_method", METHODS)
def test_render_history_accepts_malformed_calls(call_method: CallMethod, calls: Any) -> None:
    history = [{"role": "assistant", "tool_calls": calls}, {"role": "tool", "content": "1"}]
    json.dumps(call_method.render_history(history))


@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_message_has_text_of_the_model_only(call_method: CallMethod) -> None:
    message: dict[str, Any] = {"role": "assistant", "content": '{"a": 1}', "tool_calls": [CALL]}
    assert call_method.build_assistant_message(message, [CALL]) == {"role": "assistant", "content": '{"a": 1}'}


@pytest.mark.parametrize("call_method", TEXT_METHODS, ids=get_test_id)
def test_text_method_reports_native_calls_without_executing_them(call_method: CallMethod) -> None:
    parsed = call_method.parse_answer({"content": "", "tool_calls": [CALL]}, TOOLS)
    assert (parsed.calls, parsed.has_unexecuted_call, [f.code for f in parsed.findings]) == (
        (),
        True,
        ["unasked_tool_calls"],
    )


@pytest.mark.parametrize(("method", "constraint"), [("constrained", "xml"), ("", "")])
def test_build_method_refuses_unknown_method_or_constraint(method: str, constraint: str) -> None:
    with pytest.raises(PlanError):
        build_method(Policy(method=method, constraint=constraint))
