"""Tests with a provider that repeats keys, on every wire and by every method: no event, step or result has them."""

import json
from collections import defaultdict
from dataclasses import replace

import pytest

from benchmarks.canary_answers import SPELLING_BY_NAME, STREAM_BY_PLACE, WHOLE_ANSWER_BY_PLACE
from benchmarks.canary_search import CanarySearch
from tests.providers.driven_trials import TrialNotes, build_plan, drive_trial
from toolbench.engine.events import LoopResult
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.types import JsonObject
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply, ScriptedServer

CANARIES = {
    "key": "sk-canary-09aZq7Xw",
    "header": "header-Canary/5521xy",
    "url": "sk-urlCanary3314Kp",
    "query": "qU3ryCanary8+1=x",
}
SEARCH = CanarySearch(CANARIES.values())


def _drive(options: JsonObject, answer: ScriptedReply, *, stream: bool) -> tuple[LoopResult, TrialNotes]:
    policy = {name: value for name, value in options.items() if name != "wire"}
    wire = str(options.get("wire", "chat"))
    loop_plan: LoopPlan = replace(build_plan(max_turns=2, **policy), is_streamed=stream, wire=wire)
    notes = TrialNotes(tool=lambda name, arguments, call_id: {"joined": "".join(map(str, arguments.values()))})
    with ScriptedServer(lambda seen: answer) as provider:
        endpoint = provider.endpoint(
            base_url=f"{provider.base_url}/{CANARIES['url']}?token={CANARIES['query']}",
            key=CANARIES["key"],
            headers={"x-tenant": CANARIES["header"]},
            wire=wire,
            max_attempts=1,
        )
        return drive_trial(endpoint, notes, loop_plan), notes


def _check_no_canary(loop_result: LoopResult, notes: TrialNotes) -> None:
    assert not SEARCH.has_canary(repr(loop_result).encode()), loop_result
    for step in notes.steps:
        assert not SEARCH.has_canary(repr(step).encode()), step
        if isinstance(step, ExchangeStep):
            assert not SEARCH.has_canary(step.response_body), step.response_body
            assert sum(size for _, size in step.chunks) == len(step.response_body)
    for event in notes.events:
        assert not SEARCH.has_canary(repr(event).encode()), event
    text_by_field: defaultdict[object, str] = defaultdict(str)
    for event in notes.events:
        if event.type == "llm_delta":
            for kind in ("text", "reasoning", "arguments"):
                text_by_field[event.turn, kind] += event.data.get(kind, "")
    assert not any(SEARCH.has_canary_in_text(text) for text in text_by_field.values()), text_by_field


@pytest.mark.parametrize("canary", CANARIES)
@pytest.mark.parametrize("place", STREAM_BY_PLACE)
def test_drive_key_in_a_stream_is_masked_everywhere(place: str, canary: str) -> None:
    options, events = STREAM_BY_PLACE[place]
    body = [f"data: {json.dumps(event)}\n\n".encode() for event in events(CANARIES[canary])] + [b"data: [DONE]\n\n"]
    assert SEARCH.has_canary(b"".join(body))
    headers = {"content-type": "text/event-stream", "x-echo": CANARIES[canary]}
    _check_no_canary(*_drive(options, ScriptedReply(200, headers, body, ending=ConnectionEnd.CLOSE), stream=True))


@pytest.mark.parametrize("canary", CANARIES)
@pytest.mark.parametrize("place", WHOLE_ANSWER_BY_PLACE)
def test_drive_key_in_a_whole_answer_is_masked_everywhere(place: str, canary: str) -> None:
    options, status, build_value = WHOLE_ANSWER_BY_PLACE[place]
    value = build_value(CANARIES[canary])
    body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
    assert SEARCH.has_canary(body)
    headers = {"x-echo": CANARIES[canary], f"x-{CANARIES[canary].lower().replace('/', '').replace('=', '')}": "1"}
    _check_no_canary(*_drive(options, ScriptedReply(status, headers, body), stream=False))


@pytest.mark.parametrize("spelling", SPELLING_BY_NAME)
def test_drive_spelled_key_in_a_stream_is_masked_everywhere(spelling: str) -> None:
    events = STREAM_BY_PLACE["chat content"][1](SPELLING_BY_NAME[spelling](CANARIES["key"]))
    body = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    assert SEARCH.has_canary(b"".join(body))
    _check_no_canary(*_drive({}, ScriptedReply(200, {}, body, ending=ConnectionEnd.CLOSE), stream=True))


def test_drive_key_joined_by_a_tool_is_masked_everywhere() -> None:
    key = CANARIES["key"]
    function = {"name": "get_weather", "arguments": json.dumps({"city": key[:7], "state": key[7:]})}
    call = {"id": "c", "type": "function", "function": function}
    answer = ScriptedReply(200, {}, json.dumps({"choices": [{"message": {"tool_calls": [call]}}]}).encode())
    loop_result, notes = _drive({}, answer, stream=False)
    results = [step for step in notes.steps if isinstance(step, ToolStep)]
    assert results[0].result.was_executed
    _check_no_canary(loop_result, notes)
