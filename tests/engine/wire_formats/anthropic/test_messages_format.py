"""Tests of complete runs of the loop in the Messages format."""

import json
from dataclasses import replace
from typing import Any

from tests.engine.scripted_model import build_plan, run_script
from tests.engine.wire_formats.anthropic.events import build_message, render_stream
from tests.engine.wire_formats.anthropic.sdk_types import parse_request
from toolbench.engine.events import EndReason
from toolbench.engine.types import JsonObject

THINKING = {"type": "thinking", "thinking": "First I read.", "signature": "c2ln"}
READ = {"type": "tool_use", "id": "toolu_1", "name": "state_get", "input": {}}
WRITE = {"type": "tool_use", "id": "toolu_2", "name": "state_patch", "input": {"ops": [{"op": "set"}]}}
DONE = {"type": "text", "text": "Done."}
CALLS = build_message(THINKING, READ, WRITE, stop="tool_use")


def render_body(answer: JsonObject) -> bytes:
    return json.dumps(answer).encode()


def build_messages_plan(**more: Any) -> Any:
    return replace(build_plan(system="Be brief."), wire="anthropic", **more)


def test_messages_run_executes_calls_and_sends_thinking_and_results() -> None:
    run = run_script(build_messages_plan(), [render_body(CALLS), render_body(build_message(DONE))])
    assert (run.ended.end, run.ended.final_text) == (EndReason.FINAL, "Done.")
    assert [call.name for call in run.ran] == ["state_get", "state_patch"]
    for sent in run.bodies:
        assert parse_request(sent) == sent
    assistant, results = run.bodies[1]["messages"][1:]
    assert assistant["content"] == [THINKING, READ, WRITE]
    assert [block["tool_use_id"] for block in results["content"]] == ["toolu_1", "toolu_2"]
    assert run.bodies[0]["system"] == "Be brief."
    assert run.ended.usage.input_tokens == 34


def test_messages_streamed_run_equals_unstreamed_run() -> None:
    complete = run_script(build_messages_plan(), [render_body(CALLS), render_body(build_message(DONE))]).ended
    run = run_script(build_messages_plan(is_streamed=True), [render_stream(CALLS), render_stream(build_message(DONE))])
    assert run.ended.history == complete.history
    assert [sent["stream"] for sent in run.bodies] == [True, True]


def test_messages_run_does_not_send_call_that_was_not_kept() -> None:
    plan = build_messages_plan(options={"parallel_tool_calls": False})
    sent = run_script(plan, [render_body(CALLS), render_body(build_message(DONE))]).bodies[1]["messages"]
    assert sent[1]["content"] == [THINKING, READ]
    assert len(sent[2]["content"]) == 1


def test_messages_run_sends_paused_turn_back_and_continues() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    run = run_script(
        build_messages_plan(), [render_body(build_message(search, stop="pause_turn")), render_body(build_message(DONE))]
    )
    assert run.ended.final_text == "Done."
    assert run.bodies[1]["messages"][1:] == [{"role": "assistant", "content": [search]}]
    first = run.ended.turns[0].answer
    assert first is not None
    assert [finding.code for finding in first.findings] == ["turn_paused"]


def test_messages_run_of_paused_answers_ends_at_turn_limit() -> None:
    paused = render_body(build_message(DONE, stop="pause_turn"))
    limited = replace(build_messages_plan(), policy=build_plan(max_turns=3).policy)
    assert run_script(limited, [paused] * 3).ended.end is EndReason.MAX_TURNS_EXCEEDED


def test_messages_run_works_with_text_json() -> None:
    call = {"type": "text", "text": '```json\n{"name": "state_get", "arguments": {}}\n```'}
    plan = replace(build_messages_plan(), policy=build_plan(method="text_json").policy)
    run = run_script(plan, [render_body(build_message(call)), render_body(build_message(DONE))])
    assert [call.name for call in run.ran] == ["state_get"]
    for sent in run.bodies:
        assert parse_request(sent) == sent
        assert "tools" not in sent
