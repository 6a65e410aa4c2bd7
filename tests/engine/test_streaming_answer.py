import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.scripted_model import build_plan
from tests.engine.streams import build_call_delta, render_chunk, render_stream
from toolbench.engine.events import Ask, Event
from toolbench.engine.loop.run import run_loop
from toolbench.engine.streaming_answer import StreamingAnswer


def delta(turn: int = 0, **data: object) -> Event:
    return Event("llm_delta", turn, {"text": "", "reasoning": "", **data})


def asks(place: int, name: str, arguments: str, *, closed: bool = False) -> Event:
    return Event("llm_delta", 0, {"call": place, "name": name, "arguments": arguments, "closed": closed})


def test_arguments_are_seen_while_they_are_written() -> None:
    watched, seen = StreamingAnswer(), []
    for piece in ('{"ops": [{"op": "se', 't", "path": "/draft', '/foo"}', "]}"):
        watched.take(asks(0, "state_patch", piece))
        seen.append(watched.calls[0].arguments)

    assert seen == [
        {"ops": [{"op": "se"}]},
        {"ops": [{"op": "set", "path": "/draft"}]},
        {"ops": [{"op": "set", "path": "/draft/foo"}]},
        {"ops": [{"op": "set", "path": "/draft/foo"}]},
    ]


def test_a_watcher_of_the_loop_hears_what_the_stream_says() -> None:
    watched = StreamingAnswer()
    loop = run_loop(replace(build_plan(), is_streamed=True), watched.take)
    ask = next(loop)
    assert isinstance(ask, Ask)
    ask.decoder.feed(render_chunk({"reasoning_content": "Hm."}) + render_chunk({"content": "So."}))
    ask.decoder.feed(render_chunk(build_call_delta("", name="state_get", index=0, id="a")))
    ask.decoder.feed(render_chunk(build_call_delta('{"ops": [1', name="state_patch", index=1, id="b")))

    assert (watched.reasoning, watched.text) == ("Hm.", "So.")
    assert [(call.name, call.arguments, call.is_complete) for call in watched.calls] == [
        ("state_get", None, False),
        ("state_patch", {"ops": [1]}, False),
    ]
    ask.decoder.feed(render_chunk(build_call_delta("]}", index=1)) + render_stream())
    assert (watched.calls[1].arguments_text, watched.calls[1].is_complete) == ('{"ops": [1]}', True)


def test_a_new_turn_and_a_new_attempt_begin_anew() -> None:
    watched = StreamingAnswer()
    watched.take(delta(text="Half"))
    watched.take(delta(text="Whole", attempt=2))
    assert watched.text == "Whole"
    watched.take(Event("tool_call_end", 0, {}))
    assert watched.text == "Whole"
    watched.take(delta(turn=1, reasoning="Next"))
    assert (watched.text, watched.reasoning) == ("", "Next")
    watched.take(Event("llm_request_retry", 1, {}))
    assert watched.reasoning == ""


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9), max_size=4), st.integers(1, 7))
def test_what_is_seen_only_ever_grows_to_the_whole(value: dict[str, object], size: int) -> None:
    written, watched = json.dumps(value), StreamingAnswer()
    known: set[str] = set()
    for at in range(0, len(written), size):
        watched.take(asks(0, "f", written[at : at + size], closed=at + size >= len(written)))
        seen = watched.calls[0].arguments
        assert known <= set(seen)
        known = set(seen)
    assert watched.calls[0].arguments == value
    assert watched.calls[0].is_complete
