"""What stands around thoughts stays the answer, in the tags of every family."""

import random

import pytest

from tests.engine.formats.golden_cases import TOOLS, parse_in_chunks
from toolbench.engine.formats import ParsedText, parse, split_reasoning
from toolbench.engine.formats.registry import AUTO, FORMATS

PAIRS = sorted({pair for form in FORMATS for pair in form.reasoning_markers})
OWNERS = {pair: next(form.name for form in FORMATS if pair in form.reasoning_markers) for pair in PAIRS}
PING = '{"name": "ping", "arguments": {}}'
CALL = f"<tool_call>{PING}</tool_call>"


def _alike(text: str, form: str) -> ParsedText:
    """The text read whole, after pieces of any size gave the same."""
    whole = parse(text, format=form, tools=TOOLS)
    assert (
        parse_in_chunks(text, form, 1)
        == parse_in_chunks(text, form, 3)
        == parse_in_chunks(text, form, random.Random(text))
        == whole
    )
    return whole


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    ("shape", "text", "thought"),
    [
        ("{o}{c}Hello{c}", "Hello", ""),
        ("{o}\n{c}Hello", "Hello", ""),
        ("{o}\n\n{c}\n\nHello{c}\n", "Hello", ""),
        ("{o}{c}{c}Hello", "Hello", ""),
        ("{c}Hello{c}", "Hello", ""),
        ("Hello{c}", "Hello", ""),
        ("Hello\n{c}\n", "Hello", ""),
        ("{o}Hm.{c}Hello{c}", "Hello", "Hm."),
        ("{o}Hm.{c}{o}{c}Hello{c}", "Hello", "Hm."),
        ("Hm.{c}Hello", "Hello", "Hm."),
        ("Hm.{c}Hello{c}", "Hello", "Hm."),
    ],
)
def test_empty_reasoning_or_stray_end_marker_keeps_the_answer(
    pair: tuple[str, str], shape: str, text: str, thought: str
) -> None:
    written = shape.replace("{o}", pair[0]).replace("{c}", pair[1])

    for form in (AUTO, OWNERS[pair]):
        parsed = _alike(written, form)
        assert (parsed.text, parsed.reasoning, parsed.findings) == (text, thought, ())
    assert tuple(map(str.strip, split_reasoning(written))) == (text, thought)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("{call}{c}", ""),
        ("{call}{c}Hello", "Hello"),
        ("{o}{c}{call}Hello{c}", "Hello"),
        ("{o}{c}{call}{c}Hello", "Hello"),
        ("{o}{c}Hello {call}{c}", "Hello"),
        ("Hello\n{call}\n{c}", "Hello"),
    ],
)
def test_call_before_stray_end_marker_counts(pair: tuple[str, str], shape: str, text: str) -> None:
    parsed = _alike(shape.replace("{call}", CALL).replace("{o}", pair[0]).replace("{c}", pair[1]), AUTO)

    assert ([call.name for call in parsed.calls], parsed.text, parsed.reasoning) == (["ping"], text, "")
    assert parsed.findings == ()


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("shape", ["Hm, {call} it is.{c}Hello", "{o}Hm, {call} it is.{c}Hello"])
def test_call_inside_reasoning_does_not_count(pair: tuple[str, str], shape: str) -> None:
    parsed = _alike(shape.replace("{call}", CALL).replace("{o}", pair[0]).replace("{c}", pair[1]), AUTO)

    assert (parsed.calls, parsed.text) == ((), "Hello")
    assert [finding.code for finding in parsed.findings] == ["call_in_reasoning"]


def test_gemma_call_with_stray_channel_end_marker_counts() -> None:
    parsed = _alike("<|channel>thought\n<channel|><|tool_call>call:ping{}<tool_call|><channel|>Hello", "gemma4")

    assert ([call.name for call in parsed.calls], parsed.text, parsed.reasoning) == (["ping"], "Hello", "")
