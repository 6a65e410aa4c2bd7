"""Tests that text around reasoning stays the answer, with the tags of every family."""

import random

import pytest

from tests.engine.formats.golden_cases import TOOLS, parse_in_chunks
from toolbench.engine.formats import ParsedText, parse, split_reasoning
from toolbench.engine.formats.registry import AUTO, FORMATS

PAIRS = sorted({pair for text_format in FORMATS for pair in text_format.reasoning_markers})
FORMAT_BY_PAIR = {
    pair: next(text_format.name for text_format in FORMATS if pair in text_format.reasoning_markers) for pair in PAIRS
}
PING = '{"name": "ping", "arguments": {}}'
CALL = f"<tool_call>{PING}</tool_call>"


def _parse_in_all_ways(text: str, text_format: str) -> ParsedText:
    """Return the parsed text after checking that chunks give the same result."""
    complete = parse(text, format=text_format, tools=TOOLS)
    assert (
        parse_in_chunks(text, text_format, 1)
        == parse_in_chunks(text, text_format, 3)
        == parse_in_chunks(text, text_format, random.Random(text))
        == complete
    )
    return complete


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    ("shape", "text", "reasoning"),
    [
        ("{o}{c}Hello{c}", "Hello", ""),
        ("{o}\n{c}Hello", "Hello", ""),
        ("{o}\n\n{c}\n\nHello{c}\n", "Hello", ""),
        ("{o}{c}{c}Hello", "Hello", ""),
        ("{c}Hello{c}", "Hello", ""),
        ("Hello{c}", "Hello", ""),
        ("Hm{c}\nSo\n{o}more{c}\nDone", "So\n\nDone", "Hm\nmore"),
        ("Hello\n{c}\n", "Hello", ""),
        ("{o}Hm.{c}Hello{c}", "Hello", "Hm."),
        ("{o}Hm.{c}{o}{c}Hello{c}", "Hello", "Hm."),
        ("Hm.{c}Hello", "Hello", "Hm."),
        ("Hm.{c}Hello{c}", "Hello", "Hm."),
        ("Hm.\n{c}\n{o}So.{c}Hello", "Hello", "Hm.\n\nSo."),
    ],
)
def test_parse_empty_reasoning_or_stray_end_marker_keeps_the_answer(
    pair: tuple[str, str], shape: str, text: str, reasoning: str
) -> None:
    marked_text = shape.replace("{o}", pair[0]).replace("{c}", pair[1])

    for text_format in (AUTO, FORMAT_BY_PAIR[pair]):
        parsed = _parse_in_all_ways(marked_text, text_format)
        assert (parsed.text, parsed.reasoning, parsed.findings) == (text, reasoning, ())
    assert tuple(map(str.strip, split_reasoning(marked_text))) == (text, reasoning)


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
def test_parse_reads_call_before_stray_end_marker(pair: tuple[str, str], shape: str, text: str) -> None:
    parsed = _parse_in_all_ways(shape.replace("{call}", CALL).replace("{o}", pair[0]).replace("{c}", pair[1]), AUTO)

    assert ([call.name for call in parsed.calls], parsed.text, parsed.reasoning) == (["ping"], text, "")
    assert parsed.findings == ()


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("shape", ["Hm, {call} it is.{c}Hello", "{o}Hm, {call} it is.{c}Hello"])
def test_parse_ignores_call_inside_reasoning_with_finding(pair: tuple[str, str], shape: str) -> None:
    parsed = _parse_in_all_ways(shape.replace("{call}", CALL).replace("{o}", pair[0]).replace("{c}", pair[1]), AUTO)

    assert (parsed.calls, parsed.text) == ((), "Hello")
    assert [finding.code for finding in parsed.findings] == ["call_in_reasoning"]


def test_parse_reads_gemma_call_with_stray_channel_end_marker() -> None:
    parsed = _parse_in_all_ways(
        "<|channel>thought\n<channel|><|tool_call>call:ping{}<tool_call|><channel|>Hello", "gemma4"
    )

    assert ([call.name for call in parsed.calls], parsed.text, parsed.reasoning) == (["ping"], "Hello", "")


def test_parse_reasoning_has_block_of_several_calls_once() -> None:
    reasoning = "Hm. <|tool_call_start|>[ping(), ping()]<|tool_call_end|>"
    parsed = _parse_in_all_ways(f"{reasoning}</think>Hello", "lfm2")
    assert (parsed.calls, parsed.text, parsed.reasoning) == ((), "Hello", reasoning)
