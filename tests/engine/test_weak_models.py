"""The five tests that the report on weak models lists, under its names, and tests of its other promises for a turn."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.scripted_model import LoopRun, build_answer, build_call, build_calling_answer, build_plan, run_script
from toolbench.engine.events import EndReason
from toolbench.engine.repairs import REPAIR_NAMES
from toolbench.engine.types import JsonObject

DONE = build_answer("完成。")
GOOD = '{"ops":[{"op":"set"}]}'
FENCED = '```json\n{"name": "state_get", "arguments": {}}\n```'
TOOL_USE_ONLY = ('"tools"', '"tool_choice"', "fill in the tool's parameters", "Do not output JSON")
TEXT_ONLY = ("You can use these tools", "one fenced block", "```json")


def run_text_json(text: str, **policy: Any) -> LoopRun:
    return run_script(build_plan(method="text_json", **policy), [build_answer(text), DONE, DONE])


def list_error_codes(run: LoopRun) -> list[str]:
    return [error["code"] for envelope in run.tool_envelopes() for error in envelope["errors"]]


@pytest.mark.parametrize(
    "arguments", ["请把天气改成晴天", '{"ops": [{"op": "se', "{'ops': []", "[]", "null 和 undefined"]
)
def test_非法_Tool_Use_参数(arguments: str) -> None:
    """Send an error result for invalid arguments, record them and continue the run."""
    run = run_script(build_plan(), [build_calling_answer(build_call("state_patch", arguments)), DONE])
    assert list_error_codes(run) == ["ARGUMENTS_JSON_PARSE_ERROR"]
    assert (run.ended.end, run.ended.final_text, run.ran) == (EndReason.FINAL, "完成。", [])
    (error,) = run.ended.turns[0].answer.parse_errors if run.ended.turns[0].answer else ()
    assert (error.mode, error.snippet) == ("tool_use", arguments)


@pytest.mark.parametrize(
    "text",
    [
        f"好的，我先看一下当前状态：\n{FENCED}\n请稍候。",
        '我来调用工具 {"name": "state_get", "arguments": {}} ，稍等。',
        '{"name": "state_get", "arguments": {}}',
    ],
)
def test_旁白_JSON(text: str) -> None:
    """Execute a call with text around it; `method_used` names the fallback."""
    run = run_text_json(text)
    assert [call.name for call in run.ran] == ["state_get"]
    assert (run.ended.final_text, run.ended.turns[0].answer and run.ended.turns[0].answer.method_used) == (
        "完成。",
        "json_fallback",
    )


@pytest.mark.parametrize("repairs", [[], list(REPAIR_NAMES)])
@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "state_patch", "arguments": {"ops": [{"op": "北',
        '```json\n{"name": "state_patch", "arguments": {"ops": [',
        '{"name": "state_get", "argum',
    ],
)
def test_截断_JSON(text: str, repairs: list[str]) -> None:
    """Execute no truncated call; the answer counts as text and the turn notes it."""
    run = run_text_json(text, argument_repairs=repairs)
    turn = run.ended.turns[0].answer
    assert turn is not None
    assert (run.ran, run.ended.end, run.ended.final_text) == ([], EndReason.FINAL, text)
    assert (turn.has_unexecuted_call, turn.stop_reason, turn.notice[:19]) == (True, "stop", "Tool not executed: ")
    assert [error.mode for error in turn.parse_errors] == ["json_fallback"]


def test_并发中混入坏参数() -> None:
    """Send an error result only for the call with invalid arguments."""
    calls = [
        build_call("state_patch", GOOD, "c1"),
        build_call("state_patch", "坏的参数", "c2"),
        build_call("state_get", "{}", "c3"),
    ]
    run = run_script(build_plan(), [build_calling_answer(*calls), DONE])
    assert [call.id for call in run.ran] == ["c1", "c3"]
    assert [envelope["ok"] for envelope in run.tool_envelopes()] == [True, False, True]
    assert run.ended.final_text == "完成。"


def test_弱模型串行模式() -> None:
    """Execute one call per answer in serial mode; count the others, which the model may repeat."""
    calls = [build_call("state_get", "{}", "c1"), build_call("state_patch", GOOD, "c2")]
    run = run_script(
        build_plan(serial_calls=True), [build_calling_answer(*calls), build_calling_answer(calls[1]), DONE]
    )
    assert [call.id for call in run.ran] == ["c1", "c2"]
    assert [record.answer.ignored_call_count for record in run.ended.turns if record.answer] == [1, 0, 0]
    for body in run.bodies:
        assert all(len(message.get("tool_calls", ())) <= 1 for message in body["messages"])


def test_reprompt_of_unusable_call_quotes_error_and_example() -> None:
    broken = '```json\n{"name": "state_patch", "arguments": {"ops": [\n```'
    run = run_script(
        build_plan(method="text_json", repair_request=True), [build_answer(broken), build_answer(FENCED), DONE]
    )
    messages = run.bodies[1]["messages"][-2:]
    assert messages[0] == {"role": "assistant", "content": broken}
    assert messages[1]["role"] == "user"
    assert messages[1]["content"].startswith("Tool not executed: no call of a known tool can be read.")
    assert messages[1]["content"].count("```json") == 1
    assert ([call.name for call in run.ran], run.ended.reprompt_count) == (["state_get"], 1)
    assert [event["reason"] for event in run.list_event_data("tool_not_executed")] == [
        "no call of a known tool can be read"
    ]


def test_reprompt_is_sent_once_and_second_answer_is_final_text() -> None:
    run = run_script(
        build_plan(method="text_json", repair_request=True),
        [build_answer('{"name": "st'), build_answer('{"name": "sta')],
    )
    assert (len(run.bodies), run.ended.reprompt_count) == (2, 1)
    assert (run.ended.end, run.ended.final_text) == (EndReason.FINAL, '{"name": "sta')


def test_reprompt_with_native_method_asks_for_tool_parameters() -> None:
    run = run_script(
        build_plan(repair_request=True), [build_answer("state_get()"), build_calling_answer(build_call()), DONE]
    )
    reprompt = run.bodies[1]["messages"][-1]["content"]
    assert "fill in its parameters" in reprompt
    assert "```" not in reprompt
    assert [call.name for call in run.ran] == ["state_get"]


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("Done.", {"repair_request": True}),
        ("state_get()", {}),
        ("state_get()", {"repair_request": True, "max_turns": 1}),
    ],
)
def test_reprompt_needs_unusable_call_setting_and_turn(text: str, policy: JsonObject) -> None:
    run = run_script(build_plan(**policy), [build_answer(text)])
    assert (len(run.bodies), run.ended.reprompt_count, run.ended.end) == (1, 0, EndReason.FINAL)


def test_native_and_text_instructions_are_never_in_one_request() -> None:
    history = [build_calling_answer(build_call("state_patch", "坏")), build_answer("state_get()"), DONE]
    native = run_script(build_plan(tool_use_prompt=True, repair_request=True), history)
    text = run_script(
        build_plan(method="text_json", repair_request=True), [build_answer('{"name": "st'), build_answer(FENCED), DONE]
    )
    for body in map(json.dumps, native.bodies):
        assert "fill in the tool's parameters" in body
        assert not any(word in body for word in TEXT_ONLY)
    for body in map(json.dumps, text.bodies):
        assert "You can use these tools" in body
        assert not any(word in body for word in TOOL_USE_ONLY)


def test_native_instruction_needs_option_and_tools() -> None:
    instruction = "fill in the tool's parameters"
    assert instruction not in json.dumps(run_script(build_plan(), [DONE]).bodies)
    assert instruction not in json.dumps(
        run_script(build_plan(tool_use_prompt=True, tool_use_mode="disabled"), [DONE]).bodies
    )
    (body,) = run_script(build_plan(tool_use_prompt=True, system="Be brief."), [DONE]).bodies
    assert body["messages"][0]["content"].startswith("Be brief.\n\nTo use a tool")


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["native", "text_json", "constrained"]),
    st.text(st.sampled_from('{}[]":,`\n <>北京 nameargumentsstate_get'), max_size=80),
    st.none() | st.lists(st.text(max_size=20), max_size=3),
    st.booleans(),
)
def test_unusable_call_never_ends_the_run_with_an_error(
    method: str, text: str, arguments: Any, has_reprompt: bool
) -> None:
    """End every run with text or at the turn limit, with a result for every kept call."""
    calls = arguments and [build_call("state_get", item, f"c{index}") for index, item in enumerate(arguments)]
    script = [build_answer(text, calls=calls) for _ in range(3)]
    run = run_script(
        build_plan(method=method, repair_request=has_reprompt, max_turns=3, argument_repairs=list(REPAIR_NAMES)), script
    )
    assert run.ended.end in (EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED)
    assert run.ended.reprompt_count <= 1
    for record in run.ended.turns:
        assert record.answer is not None
        assert len(record.results) == len(record.answer.calls)
        assert (record.answer.stop_reason == "tool_use") == bool(record.answer.calls)
