"""Whole runs of the loop on this wire."""

import json
from dataclasses import replace
from typing import Any

from tests.engine.scripted_model import build_plan, run_script
from tests.engine.wire_formats.anthropic.events import build_message, render_stream
from tests.engine.wire_formats.anthropic.sdk_types import parse_request
from toolbench.engine.events import EndReason
from toolbench.engine.types import JsonObject

THOUGHT = {"type": "thinking", "thinking": "First I read.", "signature": "c2ln"}
READ = {"type": "tool_use", "id": "toolu_1", "name": "state_get", "input": {}}
WRITE = {"type": "tool_use", "id": "toolu_2", "name": "state_patch", "input": {"ops": [{"op": "set"}]}}
DONE = {"type": "text", "text": "Done."}
CALLS = build_message(THOUGHT, READ, WRITE, stop="tool_use")


def body(answer: JsonObject) -> bytes:
    return json.dumps(answer).encode()


def on_this_wire(**more: Any) -> Any:
    return replace(build_plan(system="Be brief."), wire="anthropic", **more)


def test_calls_are_run_and_thinking_and_results_go_back() -> None:
    played = run_script(on_this_wire(), [body(CALLS), body(build_message(DONE))])
    assert (played.ended.end, played.ended.final_text) == (EndReason.FINAL, "Done.")
    assert [call.name for call in played.ran] == ["state_get", "state_patch"]
    for sent in played.bodies:
        assert parse_request(sent) == sent
    assistant, results = played.bodies[1]["messages"][1:]
    assert assistant["content"] == [THOUGHT, READ, WRITE]
    assert [block["tool_use_id"] for block in results["content"]] == ["toolu_1", "toolu_2"]
    assert played.bodies[0]["system"] == "Be brief."
    assert played.ended.usage.input_tokens == 34


def test_streams_give_the_same_run() -> None:
    whole = run_script(on_this_wire(), [body(CALLS), body(build_message(DONE))]).ended
    played = run_script(on_this_wire(is_streamed=True), [render_stream(CALLS), render_stream(build_message(DONE))])
    assert played.ended.history == whole.history
    assert [sent["stream"] for sent in played.bodies] == [True, True]


def test_a_call_that_was_not_kept_does_not_go_back() -> None:
    given = on_this_wire(options={"parallel_tool_calls": False})
    sent = run_script(given, [body(CALLS), body(build_message(DONE))]).bodies[1]["messages"]
    assert sent[1]["content"] == [THOUGHT, READ]
    assert len(sent[2]["content"]) == 1


def test_a_paused_turn_is_sent_back_as_it_is_and_goes_on() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    played = run_script(on_this_wire(), [body(build_message(search, stop="pause_turn")), body(build_message(DONE))])
    assert played.ended.final_text == "Done."
    assert played.bodies[1]["messages"][1:] == [{"role": "assistant", "content": [search]}]
    first = played.ended.turns[0].answer
    assert first is not None
    assert [finding.code for finding in first.findings] == ["turn_paused"]


def test_an_endpoint_that_only_pauses_ends_with_the_turns() -> None:
    paused = body(build_message(DONE, stop="pause_turn"))
    limited = replace(on_this_wire(), policy=build_plan(max_turns=3).policy)
    assert run_script(limited, [paused] * 3).ended.end is EndReason.MAX_TURNS_EXCEEDED


def test_asking_in_words_travels_too() -> None:
    call = {"type": "text", "text": '```json\n{"name": "state_get", "arguments": {}}\n```'}
    given = replace(on_this_wire(), policy=build_plan(method="text_json").policy)
    played = run_script(given, [body(build_message(call)), body(build_message(DONE))])
    assert [call.name for call in played.ran] == ["state_get"]
    for sent in played.bodies:
        assert parse_request(sent) == sent
        assert "tools" not in sent
