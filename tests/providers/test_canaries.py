"""A provider that repeats keys, on every wire and by every method: nothing that is told, kept or returned has them."""

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.canary_search import Search
from tests.providers.drives import Notes, driven, plan
from tests.providers.test_masking_everywhere import SPELLINGS
from toolbench.engine.events import Ended
from toolbench.engine.loop.loop import LoopPlan
from toolbench.engine.messages import JsonObject
from toolbench.providers.recording import ExchangeStep, ToolStep
from toolbench.providers.scripted import Answer, Ending, ScriptedProvider

CANARIES = {
    "key": "sk-canary-09aZq7Xw",
    "header": "header-Canary/5521xy",
    "url": "sk-urlCanary3314Kp",
    "query": "qU3ryCanary8+1=x",
}
SEARCH = Search(CANARIES.values())
Events = Callable[[str], list[JsonObject]]


def _cut(text: str) -> list[str]:
    return [text[at : at + 3] for at in range(0, len(text), 3)]


def _delta(delta: JsonObject, finish: str | None = None) -> JsonObject:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _call(said: str, **of: str) -> list[JsonObject]:
    given = {"id": "call_1", "name": "get_weather", "arguments": "{}"} | of
    first = {"index": 0, "id": given["id"], "type": "function", "function": {"name": "", "arguments": ""}}
    rest = [("name", part) for part in _cut(given["name"])] + [("arguments", part) for part in _cut(given["arguments"])]
    parts = [{"index": 0, "function": {field: part}} for field, part in rest]
    return [*(_delta({"tool_calls": [part]}) for part in (first, *parts)), _delta({}, "tool_calls")]


def _texts(field: str) -> Events:
    return lambda said: [*(_delta({field: part}) for part in _cut(said)), _delta({}, "stop")]


def _written_call(said: str) -> str:
    return json.dumps({"name": "get_weather", "arguments": {"city": said}})


def _blocks(block: JsonObject, kind: str, field: str) -> Events:
    def events(said: str) -> list[JsonObject]:
        said = json.dumps({"city": said}) if kind == "input_json_delta" else said
        deltas = [
            {"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: part}} for part in _cut(said)
        ]
        return [
            {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {}}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            *deltas,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]

    return events


STREAMS: dict[str, tuple[JsonObject, Events]] = {
    "chat content": ({}, _texts("content")),
    "chat reasoning": ({}, _texts("reasoning_content")),
    "chat arguments": ({}, lambda said: _call(said, arguments=json.dumps({"city": said}))),
    "chat broken arguments": ({}, lambda said: _call(said, arguments=f'{{"city": "{said}')),
    "chat tool name": ({}, lambda said: _call(said, name=said)),
    "chat id": ({}, lambda said: _call(said, id=said, arguments='{"city": "Oslo"}')),
    "chat error": ({}, lambda said: [_delta({"content": "So"}), {"error": {"code": 502, "message": said}}]),
    "text JSON": ({"method": "text_json"}, lambda said: _texts("content")(_written_call(said))),
    "constrained": ({"method": "constrained"}, lambda said: _texts("content")(_written_call(said))),
    "template": (
        {"method": "template"},
        lambda said: [
            {"choices": [{"index": 0, "text": part, "finish_reason": None}]}
            for part in _cut(f"<tool_call>\n{_written_call(said)}\n</tool_call>")
        ],
    ),
    "llama": (
        {"method": "template", "prompt_endpoint": "llama"},
        lambda said: [{"content": part, "stop": False} for part in _cut(said)],
    ),
    "messages text": ({"wire": "anthropic"}, _blocks({"type": "text", "text": ""}, "text_delta", "text")),
    "messages thinking": (
        {"wire": "anthropic"},
        _blocks({"type": "thinking", "thinking": ""}, "thinking_delta", "thinking"),
    ),
    "messages arguments": (
        {"wire": "anthropic"},
        _blocks(
            {"type": "tool_use", "id": "t", "name": "get_weather", "input": {}}, "input_json_delta", "partial_json"
        ),
    ),
}


def _message(message: JsonObject) -> JsonObject:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}]}


def _whole_call(said: str) -> JsonObject:
    function = {"name": f"n{said}", "arguments": json.dumps({"city": said, said: 1})}
    return _message({"content": None, "tool_calls": [{"id": said, "type": "function", "function": function}]})


def _whole_block(said: str) -> JsonObject:
    blocks = [{"type": "text", "text": said}, {"type": "tool_use", "id": said, "name": said, "input": {said: [said]}}]
    return {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use", "usage": {}}


WHOLE: dict[str, tuple[JsonObject, int, Callable[[str], object]]] = {
    "chat content and reasoning": ({}, 200, lambda said: _message({"content": said, "reasoning": said})),
    "chat content in parts": (
        {},
        200,
        lambda said: _message({"content": [{"type": "text", "text": part} for part in _cut(said)]}),
    ),
    "chat call": ({}, 200, _whole_call),
    "chat names of the server": ({}, 200, lambda said: {**_message({"content": "x"}), "model": said, "provider": said}),
    "text JSON": ({"method": "text_json"}, 200, lambda said: _message({"content": _written_call(said)})),
    "constrained": ({"method": "constrained"}, 200, lambda said: _message({"content": _written_call(said)})),
    "template": ({"method": "template"}, 200, lambda said: {"choices": [{"index": 0, "text": said}]}),
    "messages": ({"wire": "anthropic"}, 200, _whole_block),
    "error object": ({}, 401, lambda said: {"error": {"message": f"Bad key {said}", "metadata": {"raw": said}}}),
    "error text": ({}, 500, lambda said: f"Bad key {said}"),
    "messages error": ({"wire": "anthropic"}, 400, lambda said: {"type": "error", "error": {"message": said}}),
    "no answer": ({}, 200, lambda said: f"<p>{said}</p>"),
}


def _driven(given: JsonObject, answer: Answer, *, stream: bool) -> tuple[Ended, Notes]:
    policy = {name: value for name, value in given.items() if name != "wire"}
    wire = str(given.get("wire", "chat"))
    loop_plan: LoopPlan = replace(plan(max_turns=2, **policy), stream=stream, wire=wire)
    notes = Notes(tool=lambda name, arguments, call_id: {"joined": "".join(map(str, arguments.values()))})
    with ScriptedProvider(lambda seen: answer) as provider:
        endpoint = provider.endpoint(
            base_url=f"{provider.base_url}/{CANARIES['url']}?token={CANARIES['query']}",
            key=CANARIES["key"],
            headers={"x-tenant": CANARIES["header"]},
            wire=wire,
            max_attempts=1,
        )
        return driven(endpoint, notes, loop_plan), notes


def _check(ended: Ended, notes: Notes) -> None:
    assert not SEARCH.found_in(repr(ended).encode()), ended
    for step in notes.steps:
        assert not SEARCH.found_in(repr(step).encode()), step
        if isinstance(step, ExchangeStep):
            assert not SEARCH.found_in(step.response_body), step.response_body
            assert sum(size for _, size in step.chunks) == len(step.response_body)
    for event in notes.events:
        assert not SEARCH.found_in(repr(event).encode()), event
    heard: defaultdict[object, str] = defaultdict(str)
    for event in notes.events:
        if event.type == "llm_delta":
            for kind in ("text", "reasoning", "arguments"):
                heard[event.turn, kind] += event.data.get(kind, "")
    assert not any(SEARCH.in_text(said) for said in heard.values()), heard


@pytest.mark.parametrize("canary", CANARIES)
@pytest.mark.parametrize("place", STREAMS)
def test_a_key_in_a_stream_reaches_nobody(place: str, canary: str) -> None:
    given, events = STREAMS[place]
    body = [f"data: {json.dumps(event)}\n\n".encode() for event in events(CANARIES[canary])] + [b"data: [DONE]\n\n"]
    assert SEARCH.found_in(b"".join(body))
    headers = {"content-type": "text/event-stream", "x-echo": CANARIES[canary]}
    _check(*_driven(given, Answer(200, headers, body, ending=Ending.CLOSE), stream=True))


@pytest.mark.parametrize("canary", CANARIES)
@pytest.mark.parametrize("place", WHOLE)
def test_a_key_in_a_whole_answer_reaches_nobody(place: str, canary: str) -> None:
    given, status, said = WHOLE[place]
    value = said(CANARIES[canary])
    body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
    headers = {"x-echo": CANARIES[canary], f"x-{CANARIES[canary].lower().replace('/', '').replace('=', '')}": "1"}
    _check(*_driven(given, Answer(status, headers, body), stream=False))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_spelled_key_in_a_stream_reaches_nobody(spelling: str) -> None:
    events = STREAMS["chat content"][1](SPELLINGS[spelling](CANARIES["key"]))
    body = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    _check(*_driven({}, Answer(200, {}, body, ending=Ending.CLOSE), stream=True))


def test_a_tool_that_joins_two_arguments_makes_no_key() -> None:
    key = CANARIES["key"]
    function = {"name": "get_weather", "arguments": json.dumps({"city": key[:7], "state": key[7:]})}
    call = {"id": "c", "type": "function", "function": function}
    answer = Answer(200, {}, json.dumps(_message({"tool_calls": [call]})).encode())
    ended, notes = _driven({}, answer, stream=False)
    results = [step for step in notes.steps if isinstance(step, ToolStep)]
    assert results[0].result.executed
    _check(ended, notes)
