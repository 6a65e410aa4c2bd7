"""Properties of the decoder for any text: no exception, equal results in any chunks, calls in proportion to length."""

import json
import random
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.formats.golden_cases import DATA_FOLDER, TOOLS, list_markers, parse_in_chunks, read_golden_cases
from toolbench.engine.formats import TextCall, list_format_names, parse, render, stream
from toolbench.engine.formats.registry import FORMATS

_DATA = json.loads((DATA_FOLDER / "odd.json").read_text())
ODD = [*_DATA["odd"], "-" * 40, "[" * 40, '{"a":' * 40, "9" * 5000]


MARKERS = list_markers()
RENDERED_CALLS = [
    render([TextCall("bash", {"command": "ls"}), TextCall("ping", {})], format=text_format.name)
    for text_format in FORMATS
]


def _build_random_texts(seed: int, count: int) -> Iterator[str]:
    """Yield random mixtures of markers and odd texts, and rendered calls with random changes."""
    generator = random.Random(seed)
    for _ in range(count):
        if generator.random() < 0.5:
            yield "".join(generator.choice(generator.choice((MARKERS, ODD))) for _ in range(generator.randint(1, 25)))
            continue
        text = "".join(generator.choice(RENDERED_CALLS) for _ in range(generator.randint(1, 3)))
        for _ in range(generator.randint(0, 6)):
            index = generator.randrange(len(text) + 1)
            text = (
                text[:index]
                + generator.choice(generator.choice((MARKERS, ODD)))
                + text[index + generator.choice((0, 0, 1, 5, 20)) :]
            )
        yield text


@pytest.mark.parametrize("text_format", list_format_names())
def test_parse_in_chunks_of_any_text_equals_complete_text(text_format: str) -> None:
    generator = random.Random(text_format)
    for text in _build_random_texts(
        seed=len(text_format) * 1000 + ord(text_format[0]), count=12 if text_format != "auto" else 250
    ):
        assert parse_in_chunks(text, text_format, generator) == parse(text, format=text_format, tools=TOOLS)


def test_parse_auto_keeps_arguments_that_look_like_a_call() -> None:
    call = TextCall("people.find", {"name": "Nikola Tesla"}, "functions.people.find:0")

    for text_format in ("kimi_k2", "deepseek_v3", "deepseek_v31"):
        (parsed_call,) = parse(render([call], format=text_format)).calls
        assert (parsed_call.name, parsed_call.arguments) == (call.name, call.arguments)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*MARKERS, *ODD[:20], *RENDERED_CALLS]) | st.text(max_size=6), max_size=9).map("".join),
    st.sampled_from(list_format_names()),
    st.integers(1, 9),
)
def test_parse_in_chunks_of_mixed_parts_equals_complete_text(text: str, text_format: str, size: int) -> None:
    assert parse_in_chunks(text, text_format, size) == parse(text, format=text_format, tools=TOOLS)


def test_parse_in_chunks_of_one_character_equals_complete_text() -> None:
    for text in _build_random_texts(seed=7, count=60):
        assert parse_in_chunks(text, "auto", 1) == parse(text, tools=TOOLS)


def test_stream_events_together_equal_the_parsed_answer() -> None:
    for case in read_golden_cases():
        decoder = stream(case.format, TOOLS)
        events = [
            event for start in range(0, len(case.text), 3) for event in decoder.feed(case.text[start : start + 3])
        ]
        parsed = decoder.close()
        events += decoder.feed("")
        for index, event in enumerate(events):
            if event.kind == "void":  # all earlier text was reasoning, and earlier calls do not count
                events = events[index + 1 :]
                break

        assert "".join(event.text for event in events if event.kind == "text").strip() == parsed.text
        assert tuple(event.call for event in events if event.kind == "call") == parsed.calls


def test_call_event_comes_with_the_end_marker() -> None:
    decoder = stream("hermes", TOOLS)

    before = decoder.feed('Hi <tool_call>{"name": "ping"}</tool_call')
    after = decoder.feed(">")

    assert [event.kind for event in before] == ["text"]
    assert [event.kind for event in after] == ["call"]


def test_partial_returns_text_of_incomplete_call() -> None:
    decoder = stream("hermes", TOOLS)

    decoder.feed('Hi <tool_call>{"name": "pi')

    assert decoder.partial == '<tool_call>{"name": "pi'


def test_feed_after_close_is_ignored() -> None:
    decoder = stream("auto", TOOLS)
    decoder.feed("Hello")
    parsed = decoder.close()
    decoder.feed(" there")

    assert decoder.close() == parsed
    assert parsed.text == "Hello"


def test_parse_without_tools_reads_only_marked_calls() -> None:
    bare = parse('{"name": "ping", "arguments": {}}')
    marked = parse('<tool_call>{"name": "ping", "arguments": {}}</tool_call>')

    assert bare.calls == ()
    assert [call.name for call in marked.calls] == ["ping"]


REPEATED = _DATA["repeated"]
MAX_FUNCTION_CALLS_PER_CHARACTER = 4


class _FunctionCallCounter:
    """Profile function that counts the calls of Python and C functions."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        self.calls += event in ("call", "c_call")

    def count_decoding(self, text: str, size: int) -> int:
        decoder = stream("auto", TOOLS)
        self.calls = 0
        sys.setprofile(self)
        for start in range(0, len(text), size):
            decoder.feed(text[start : start + size])
        decoder.close()
        sys.setprofile(None)
        return self.calls


@pytest.mark.parametrize("part", REPEATED)
def test_function_calls_grow_in_proportion_to_text_length(part: str) -> None:
    small, large = part * (1500 // len(part)), part * (3000 // len(part))

    for size in (1, 10_000):
        counter = _FunctionCallCounter()
        assert counter.count_decoding(large, size) <= 2.5 * counter.count_decoding(small, size) + 500


def test_long_answer_needs_at_most_four_function_calls_per_character() -> None:
    text = "".join(case.text + "\n" for case in read_golden_cases() if case.format == "auto")
    text *= 250_000 // len(text)

    assert _FunctionCallCounter().count_decoding(text, 4096) <= MAX_FUNCTION_CALLS_PER_CHARACTER * len(text)
