import json
import random
from typing import Any

import pytest

from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import Delta
from toolbench.engine.types import Turn
from toolbench.engine.wire_formats.chat_answer import ChatAnswer
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.engine.wire_formats.responses.answers import parse_responses_answer
from toolbench.providers.simulated.responses_response import build_response_events, render_response

Event = dict[str, Any]
CALLS = [
    {"id": f"call_{n}", "type": "function", "function": {"name": f"get_{n}", "arguments": f'{{"a":{n}}}'}}
    for n in (1, 2)
]
COMPLETION: Any = {
    "id": "1",
    "created": 0,
    "model": "gpt",
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {"content": "I call.", "reasoning": "Think first.", "tool_calls": CALLS},
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}


def build_events() -> list[Event]:
    events: list[Event] = json.loads(json.dumps(build_response_events(COMPLETION, random.Random(1))))
    return events


def decode(events: list[Event], deltas: list[Delta] | None = None) -> ChatAnswer:
    answers: list[ChatAnswer] = []

    def read(answer: ChatAnswer) -> Turn:
        answers.append(answer)
        return Turn(answer.message, "")

    listener = [] if deltas is None else deltas
    decoder = get_wire_format("responses").build_decoder(read, listener.append, is_streamed=True)
    for event in events:
        decoder.feed(f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode())
    decoder.close()
    return answers[0]


def list_codes(answer: ChatAnswer) -> list[str]:
    return [finding.code for finding in answer.findings]


def test_responses_stream_equals_complete_answer() -> None:
    assert decode(build_events()) == parse_responses_answer(render_response(COMPLETION))


def test_responses_stream_emits_deltas_of_text_reasoning_and_calls() -> None:
    deltas: list[Delta] = []
    decode(build_events(), deltas=deltas)
    assert "".join(delta.text for delta in deltas) == "I call."
    assert "".join(delta.reasoning for delta in deltas) == "Think first."
    for call_index in (0, 1):
        call_deltas = [delta for delta in deltas if delta.call_index == call_index]
        assert "".join(delta.arguments for delta in call_deltas) == f'{{"a":{call_index + 1}}}'
        assert [delta.is_closed for delta in call_deltas][-1]


def test_responses_items_without_deltas_are_emitted_when_done() -> None:
    events = [event for event in build_events() if not event["type"].endswith(".delta")]
    deltas: list[Delta] = []
    answer = decode(events, deltas=deltas)
    assert answer == decode(build_events())
    assert "".join(delta.text for delta in deltas) == "I call."


def test_responses_last_event_without_items_keeps_streamed_items() -> None:
    events = build_events()
    events[-1]["response"]["output"] = []
    assert decode(events) == decode(build_events())


@pytest.mark.parametrize("names", [("output_index",), ("output_index", "item_id")])
def test_responses_events_without_index_belong_to_the_last_item(names: tuple[str, ...]) -> None:
    events = build_events()
    for event in events:
        for name in names:
            event.pop(name, None)
    answer = decode(events)
    assert list_codes(answer) == ["stream_index_missing"]
    assert answer.message == decode(build_events()).message


def test_responses_items_with_the_same_index_are_separated() -> None:
    events = [event | ({"output_index": 0} if "output_index" in event else {}) for event in build_events()]
    answer = decode(events)
    assert list_codes(answer) == ["stream_index_reused"]
    assert answer.message == decode(build_events()).message


def test_responses_stream_ignores_unknown_events_and_done_marker() -> None:
    events = build_events()
    unknown_events: list[Event] = [
        {"type": "response.new.delta", "output_index": 77, "delta": "x"},
        {"type": 3},
        {"kind": "x"},
    ]
    assert decode([*events[:4], *unknown_events, *events[4:]]) == decode(events)


def test_responses_stream_cut_inside_a_call_is_truncated() -> None:
    events = build_events()
    last = max(index for index, event in enumerate(events) if event["type"].endswith("arguments.delta"))
    answer = decode(events[: last + 1])
    assert answer.is_truncated
    assert list_codes(answer) == ["stream_cut", "stream_usage_missing"]
    assert len(answer.message["tool_calls"]) == 2


def test_responses_stream_without_last_event_is_unfinished() -> None:
    answer = decode(build_events()[:-1])
    assert list_codes(answer) == ["stream_unfinished", "stream_usage_missing"]
    assert (answer.is_truncated, answer.finish_reason) == (False, None)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "Down", "param": None},
        {"error": {"message": "Down"}},
        {"type": "response.failed", "response": {"status": "failed", "error": {"message": "Down"}, "output": []}},
    ],
)
def test_responses_stream_error_event_is_malformed_answer(event: Event) -> None:
    with pytest.raises(MalformedAnswerError, match="Down"):
        decode([*build_events()[:3], event])


def test_responses_stream_without_response_event_is_malformed() -> None:
    with pytest.raises(MalformedAnswerError, match="no event of a response"):
        decode([{"type": "ping"}])


def test_responses_stream_cut_at_any_event_has_usage_finding() -> None:
    events = build_events()
    for count in range(1, len(events)):
        answer = decode(events[:count])
        assert "stream_usage_missing" in list_codes(answer)
