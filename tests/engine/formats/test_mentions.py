"""Tests that ordinary texts in many languages contain no call for any format."""

import json
import random

import pytest

from tests.engine.formats.golden_cases import DATA_FOLDER, TOOLS, parse_in_chunks
from toolbench.engine.formats import ParsedText, TextCall, parse, render
from toolbench.engine.formats.registry import FORMATS
from toolbench.engine.methods.inline_reasoning import split_text_reasoning
from toolbench.engine.methods.json_in_text import find_attempted_call
from toolbench.engine.transforms.tool_call_tags import extract_tagged_calls

ROWS: list[dict[str, str]] = json.loads((DATA_FOLDER / "natural_texts.json").read_text())
TEXTS = [row["text"] for row in ROWS]
NAMES = [tool["function"]["name"] for tool in TOOLS]
MARKERS = sorted(
    {
        word
        for text_format in FORMATS
        for word in (*text_format.dropped_tokens, *(tag for pair in text_format.reasoning_markers for tag in pair))
    }
    | {
        word
        for text_format in FORMATS
        for block in text_format.blocks
        for word in (block.start_marker, *block.end_markers, *block.next_markers)
    }
)
SENTENCES = [
    "The marker {} stands in a sentence.",
    'It is written as "{}", then a name follows.',
    "Use {} or {} here, not both.",
    "Token {}: it ends a turn.",
    "Das Zeichen {} beendet den Aufruf, sagt man.",
    "Le mot « {} » sert à ouvrir.",
    "（{}）を使います。",
]


def test_natural_texts_cover_ten_languages() -> None:
    kinds = {"prose", "code", "html", "json", "quotation", "mathematics", "markers"}
    by_language: dict[str, set[str]] = {}
    for row in ROWS:
        by_language.setdefault(row["language"], set()).add(row["kind"])

    assert len(ROWS) >= 60
    assert sum(kinds_found == kinds for kinds_found in by_language.values()) >= 10


@pytest.mark.parametrize("text", TEXTS)
def test_parse_auto_keeps_natural_text_unchanged(text: str) -> None:
    for tools in (TOOLS, []):
        for parsed in (
            parse(text, tools=tools),
            parse_in_chunks(text, "auto", 1, tools),
            parse_in_chunks(text, "auto", random.Random(text), tools),
        ):
            assert parsed == ParsedText(text)


@pytest.mark.parametrize("text", TEXTS)
def test_other_readers_keep_natural_text_unchanged(text: str) -> None:
    assert find_attempted_call(text, NAMES) is None
    assert extract_tagged_calls(text, NAMES) == (text, [])
    assert split_text_reasoning(text) == (text, "")


@pytest.mark.parametrize("marker", MARKERS)
def test_parse_keeps_marker_in_a_sentence_as_text(marker: str) -> None:
    for sentence in SENTENCES:
        text = sentence.replace("{}", marker)
        assert parse(text, tools=TOOLS) == parse_in_chunks(text, "auto", 1) == ParsedText(text)


CALL = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'


@pytest.mark.parametrize("text", [row["text"] for row in ROWS if row["kind"] in ("prose", "quotation", "markers")])
def test_parse_reads_call_after_natural_text_and_keeps_the_text(text: str) -> None:
    parsed = parse(f"{text}\n\n{CALL}", tools=TOOLS)

    assert ([call.name for call in parsed.calls], parsed.text) == (["ping"], text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello<|im_end|>", "Hello"),
        ("Hello <|eot_id|>\n", "Hello"),
        ("Hello</s>", "Hello"),
        ("Hello</s></s>", "Hello"),
        ("Hello<end_of_turn>\n", "Hello"),
        ("<|START_RESPONSE|>Hello<|END_RESPONSE|>", "Hello"),
        ("<s>Hello</s>", "<s>Hello</s>"),
        ("It ends with </s>", "It ends with </s>"),
        ("One <|im_end|> two", "One <|im_end|> two"),
        (f"Hello {CALL}</tool_call><|im_end|>", "Hello"),
        (f"Hello <minimax:tool_call>{CALL}</minimax:tool_call>", "Hello"),
    ],
)
def test_parse_drops_leaked_tokens_unless_mentioned(text: str, expected: str) -> None:
    assert parse(text, tools=TOOLS).text == parse_in_chunks(text, "auto", 1).text == expected


def _render_call(name: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'


@pytest.mark.parametrize(
    ("text", "calls", "findings"),
    [
        ("Write <tool_call>...</tool_call> to call.", [], []),
        ("<tool_call>...</tool_call>", [], ["call_unreadable"]),
        (_render_call("..."), [], ["call_unreadable"]),
        (_render_call("--"), [], ["call_unreadable"]),
        ("Write <tool_call>some_name</tool_call> to call.", [], []),
        ("So:\n<tool_call>some_name</tool_call>\nis a call.", [], []),
        ("Write <tool_call>ping</tool_call> to call.", ["ping"], []),
        (f"I will call {_render_call('ping')} now.", ["ping"], []),
        (f"I will call {_render_call('unknown')} now.", [], ["call_unoffered"]),
        (f"I will call it.\n{_render_call('unknown')}", [], ["call_unoffered"]),
        (f"So:\n\n{_render_call('unknown')}\n\nand nothing else.", [], ["call_unoffered"]),
        (f"{_render_call('unknown')}\nis a call.", [], ["call_unoffered"]),
        (f"{_render_call('unknown')}\n{_render_call('unknown')} are calls.", [], ["call_unoffered"]),
        ("Try:\n<function=other>\n<parameter=a>\n1\n</parameter>\n</function>\nas shown.", [], ["call_unoffered"]),
        (
            "<tool_call>\n<function=other>\n<parameter=a>1</parameter></function>\n</tool_call>\nas shown.",
            [],
            ["call_unoffered"],
        ),
        (f"{_render_call('unknown')}\n{_render_call('ping')}\n", ["unknown", "ping"], []),
        (f"Now:\n{_render_call('ping')}\n{_render_call('ping')}", ["ping", "ping"], []),
        (_render_call("unknown"), ["unknown"], []),
        ('Docs: <function name="strlen"><param name="s">x</param></function>', [], []),
        ('<function name="ping"></function>', ["ping"], []),
    ],
)
def test_parse_reads_call_within_text_only_with_offered_name(text: str, calls: list[str], findings: list[str]) -> None:
    for parsed in (
        parse(text, tools=TOOLS),
        parse_in_chunks(text, "auto", 1),
        parse_in_chunks(text, "auto", random.Random(text)),
    ):
        assert [call.name for call in parsed.calls] == calls
        assert [finding.code for finding in parsed.findings] == findings
        assert calls or parsed.text == text


@pytest.mark.parametrize("text_format", [text_format.name for text_format in FORMATS])
@pytest.mark.parametrize("shape", ["The format is\n\n{}", "{}\nis the format.", "So:\n{}\nand nothing else."])
def test_parse_unoffered_call_with_other_text_is_text_in_every_format(text_format: str, shape: str) -> None:
    call_text = render([TextCall("example_function", {"a": 1})], format=text_format)
    text = shape.replace("{}", call_text)

    for name in (text_format, "auto"):
        parsed = parse(text, format=name, tools=TOOLS)
        assert parsed.calls == ()
        assert "example_function" in parsed.text
        assert parse_in_chunks(text, name, 1) == parse_in_chunks(text, name, random.Random(text)) == parsed


def test_parse_unoffered_call_does_not_hide_offered_call() -> None:
    text = f"{_render_call('unknown')}\n{_render_call('ping')} Done."
    parsed = parse(text, tools=TOOLS)

    assert ([call.name for call in parsed.calls], parsed.text) == (["ping"], f"{_render_call('unknown')}\n Done.")
    assert parse_in_chunks(text, "auto", 1) == parsed


@pytest.mark.parametrize("text_format", [text_format.name for text_format in FORMATS])
def test_parse_reads_no_call_with_name_without_letter_or_digit(text_format: str) -> None:
    for name in ("...", "--", "_", "?"):
        call_text = render([TextCall(name, {})], format=text_format)
        assert parse(call_text, format=text_format).calls == parse(call_text).calls == ()


BEGIN_LINES = {"pythonic", "llama3_json", "react", "gemma3", "json", "fenced_json", "xlam", "command_r"}


@pytest.mark.parametrize(
    "text_format", [text_format.name for text_format in FORMATS if text_format.name not in BEGIN_LINES]
)
@pytest.mark.parametrize("text_before", ["I will look.", "I will look. ", "Look: "])
def test_parse_reads_offered_call_directly_after_text_in_every_format(text_format: str, text_before: str) -> None:
    calls = [TextCall("ping", {}), TextCall("bash", {"command": "ls"})]
    text = text_before + render(calls, format=text_format)

    for name in (text_format, "auto"):
        parsed = parse(text, format=name, tools=TOOLS)
        assert [(call.name, call.arguments) for call in parsed.calls] == [(call.name, call.arguments) for call in calls]
        assert (parsed.text, parse_in_chunks(text, name, 1)) == (text_before.strip(), parsed)
