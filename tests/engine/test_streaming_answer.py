import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.scripted_model import build_plan
from tests.engine.streams import build_call_delta, render_chunk, render_stream
from toolbench.engine.events import Ask, Event
from toolbench.engine.loop.run import run_loop
from toolbench.engine.streaming_answer import StreamingAnswer


def build_delta_event(turn: int = 0, **data: object) -> Event:
    return Event("llm_delta", turn, {"text": "", "reasoning": "", **data})


def build_call_event(index: int, name: str, arguments: str, *, closed: bool = False) -> Event:
    return Event("llm_delta", 0, {"call": index, "name": name, "arguments": arguments, "closed": closed})


def test_streaming_answer_shows_arguments_so_far() -> None:
    answer, seen = StreamingAnswer(), []
    for part in ('{"ops": [{"op": "se', 't", "path": "/draft', '/foo"}', "]}"):
        answer.take(build_call_event(0, "state_patch", part))
        seen.append(answer.calls[0].arguments)

    assert seen == [
        {"ops": [{"op": "se"}]},
        {"ops": [{"op": "set", "path": "/draft"}]},
        {"ops": [{"op": "set", "path": "/draft/foo"}]},
        {"ops": [{"op": "set", "path": "/draft/foo"}]},
    ]


def test_streaming_answer_follows_events_of_run_loop() -> None:
    answer = StreamingAnswer()
    loop = run_loop(replace(build_plan(), is_streamed=True), answer.take)
    ask = next(loop)
    assert isinstance(ask, Ask)
    ask.decoder.feed(render_chunk({"reasoning_content": "Hm."}) + render_chunk({"content": "So."}))
    ask.decoder.feed(render_chunk(build_call_delta("", name="state_get", index=0, id="a")))
    ask.decoder.feed(render_chunk(build_call_delta('{"ops": [1', name="state_patch", index=1, id="b")))

    assert (answer.reasoning, answer.text) == ("Hm.", "So.")
    assert [(call.name, call.arguments, call.is_complete) for call in answer.calls] == [
        ("state_get", None, False),
        ("state_patch", {"ops": [1]}, False),
    ]
    ask.decoder.feed(render_chunk(build_call_delta("]}", index=1)) + render_stream())
    assert (answer.calls[1].arguments_text, answer.calls[1].is_complete) == ('{"ops": [1]}', True)


def test_streaming_answer_clears_at_new_turn_attempt_or_retry() -> None:
    answer = StreamingAnswer()
    answer.take(build_delta_event(text="Half"))
    answer.take(build_delta_event(text="Whole", attempt=2))
    assert answer.text == "Whole"
    answer.take(Event("tool_call_end", 0, {}))
    assert answer.text == "Whole"
    answer.take(build_delta_event(turn=1, reasoning="Next"))
    assert (answer.text, answer.reasoning) == ("", "Next")
    answer.take(Event("llm_request_retry", 1, {}))
    assert answer.reasoning == ""


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9), max_size=4), st.integers(1, 7))
def test_streaming_answer_arguments_grow_to_complete_value(value: dict[str, object], size: int) -> None:
    arguments_text, answer = json.dumps(value), StreamingAnswer()
    seen_keys: set[str] = set()
    for start in range(0, len(arguments_text), size):
        answer.take(
            build_call_event(0, "f", arguments_text[start : start + size], closed=start + size >= len(arguments_text))
        )
        seen = answer.calls[0].arguments
        assert seen_keys <= set(seen)
        seen_keys = set(seen)
    assert answer.calls[0].arguments == value
    assert answer.calls[0].is_complete
