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


def decode(events: list[Event], heard: list[Delta] | None = None) -> ChatAnswer:
    answers: list[ChatAnswer] = []

    def read(answer: ChatAnswer) -> Turn:
        answers.append(answer)
        return Turn(answer.message, "")

    listener = [] if heard is None else heard
    decoder = get_wire_format("responses").build_decoder(read, listener.append, is_streamed=True)
    for event in events:
        decoder.feed(f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode())
    decoder.close()
    return answers[0]


def list_codes(answer: ChatAnswer) -> list[str]:
    return [finding.code for finding in answer.findings]


def test_stream_gives_the_answer_of_the_whole_body() -> None:
    assert decode(build_events()) == parse_responses_answer(render_response(COMPLETION))


def test_deltas_bring_text_reasoning_and_both_calls() -> None:
    heard: list[Delta] = []
    decode(build_events(), heard=heard)
    assert "".join(delta.text for delta in heard) == "I call."
    assert "".join(delta.reasoning for delta in heard) == "Think first."
    for place in (0, 1):
        deltas = [delta for delta in heard if delta.call_index == place]
        assert "".join(delta.arguments for delta in deltas) == f'{{"a":{place + 1}}}'
        assert [delta.is_closed for delta in deltas][-1]


def test_items_without_deltas_are_heard_when_they_are_done() -> None:
    events = [event for event in build_events() if not event["type"].endswith(".delta")]
    heard: list[Delta] = []
    answer = decode(events, heard=heard)
    assert answer == decode(build_events())
    assert "".join(delta.text for delta in heard) == "I call."


def test_last_event_without_items_leaves_those_that_were_streamed() -> None:
    events = build_events()
    events[-1]["response"]["output"] = []
    assert decode(events) == decode(build_events())


@pytest.mark.parametrize("names", [("output_index",), ("output_index", "item_id")])
def test_events_without_index_belong_to_the_last_item(names: tuple[str, ...]) -> None:
    events = build_events()
    for event in events:
        for name in names:
            event.pop(name, None)
    answer = decode(events)
    assert list_codes(answer) == ["stream_index_missing"]
    assert answer.message == decode(build_events()).message


def test_one_index_for_all_items_is_told_apart() -> None:
    events = [event | ({"output_index": 0} if "output_index" in event else {}) for event in build_events()]
    answer = decode(events)
    assert list_codes(answer) == ["stream_index_reused"]
    assert answer.message == decode(build_events()).message


def test_unknown_events_and_done_marker_are_ignored() -> None:
    events = build_events()
    odd: list[Event] = [{"type": "response.new.delta", "output_index": 77, "delta": "x"}, {"type": 3}, {"kind": "x"}]
    assert decode([*events[:4], *odd, *events[4:]]) == decode(events)


def test_stream_that_breaks_off_in_a_call_is_cut() -> None:
    events = build_events()
    last = max(at for at, event in enumerate(events) if event["type"].endswith("arguments.delta"))
    answer = decode(events[: last + 1])
    assert answer.is_truncated
    assert list_codes(answer) == ["stream_cut", "stream_usage_missing"]
    assert len(answer.message["tool_calls"]) == 2


def test_stream_without_last_event_is_unfinished() -> None:
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
def test_error_in_a_stream_is_malformed(event: Event) -> None:
    with pytest.raises(MalformedAnswerError, match="Down"):
        decode([*build_events()[:3], event])


def test_stream_without_response_event_is_malformed() -> None:
    with pytest.raises(MalformedAnswerError, match="no event of a response"):
        decode([{"type": "ping"}])


def test_every_cut_of_the_stream_is_read_without_other_errors() -> None:
    events = build_events()
    for count in range(1, len(events)):
        answer = decode(events[:count])
        assert "stream_usage_missing" in list_codes(answer)
