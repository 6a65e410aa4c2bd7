"""Tests that a call without one delimiter keeps its values or is unreadable, but never has other values."""

import random
import re
from typing import Any

import pytest

from tests.engine.formats.golden_cases import TOOLS
from toolbench.engine.formats import TextCall, parse, render
from toolbench.engine.formats.registry import FORMATS

WORDS = [
    "Rome",
    "note: use a, b: c",
    "a,b",
    "it's",
    'say "hi"',
    "x}",
    "[y]",
    "f(1, 2)",
    " z ",
    "",
    "3",
    "true",
    "1:2, 3",
]
TOKENS = {"gemma4": '<|"|>', "function_gemma": "<escape>"}


def _draw_arguments(generator: random.Random, words: list[str] = WORDS) -> dict[str, Any]:
    values: dict[str, Any] = {
        "colour": generator.choice(words),  # the tool has no such parameter
        "city": generator.choice(words),
        "note": generator.choice(words),
        "days": generator.randint(1, 99),
        "metric": generator.random() < 0.5,
        "tags": [generator.choice(words) for _ in range(generator.randint(0, 3))],
        "place": {"x": generator.choice(words), "y": generator.randint(1, 9)},
    }
    keys = generator.sample(sorted(values), generator.randint(1, 4))
    return {key: values[key] for key in keys}


def _check_calls(text: str, format: str, arguments: dict[str, Any], tools: Any) -> None:
    calls = parse(text, format=format, tools=tools).calls
    assert not calls or [call.arguments for call in calls] == [arguments], text


@pytest.mark.parametrize("tools", [TOOLS, []], ids=["schema", "no schema"])
@pytest.mark.parametrize("format", TOKENS)
def test_gemma_call_without_one_delimiter_has_no_other_value(format: str, tools: Any) -> None:
    """Delete each quote token, each of its characters, and each bracket, colon and comma outside of texts.

    Two cases do not occur in the arguments, because what remains is a complete call with other values, which no reader
    can notice: a comma between two bare numbers, which become one number; and a delimiter of a text that contains
    `,days:` if `days` is a parameter of the tool, since the text then looks like the next key.
    """
    generator = random.Random(f"one deletion, {format}")
    quote = TOKENS[format]
    for _ in range(150):
        arguments = _draw_arguments(generator)
        text = render([TextCall("get_weather", arguments)], format=format)
        quote_starts = [match.start() for match in re.finditer(re.escape(quote), text)]
        for quote_start in quote_starts:
            _check_calls(text[:quote_start] + text[quote_start + len(quote) :], format, arguments, tools)
            for start in range(quote_start, quote_start + len(quote)):
                _check_calls(text[:start] + text[start + 1 :], format, arguments, tools)
        parts, start = text.split(quote), 0
        for index, part in enumerate(parts):
            for offset in range(len(part) if index % 2 == 0 else 0):
                if part[offset] in "{}[]:,":
                    _check_calls(text[: start + offset] + text[start + offset + 1 :], format, arguments, tools)
            start += len(part) + len(quote)


TAG = re.compile(r"<[^<>\n]+>")
LINE_BREAKS = ["Rome\n", "\nRome"]


@pytest.mark.parametrize("tools", [TOOLS, []], ids=["schema", "no schema"])
@pytest.mark.parametrize("format", [text_format.name for text_format in FORMATS if text_format.name not in TOKENS])
def test_call_without_one_tag_has_no_other_value(format: str, tools: Any) -> None:
    """Delete each tag and token of a call and compare with the values of the complete text.

    Formats that write no line break between their tags (glm47, minicpm5, step3) get no texts that begin or end with
    one: after a deleted tag, no reader can tell whether the line break belongs to the text.
    """
    generator = random.Random(f"one tag, {format}")
    words = [*WORDS, *LINE_BREAKS] if "\n" in render([TextCall("get_weather", {"days": 1})], format=format) else WORDS
    for _ in range(60):
        text = render([TextCall("get_weather", _draw_arguments(generator, words))], format=format)
        complete_calls = parse(text, format=format, tools=tools).calls
        assert len(complete_calls) == 1 or not tools, text
        for tag in TAG.finditer(text) if complete_calls else ():
            _check_calls(text[: tag.start()] + text[tag.end() :], format, complete_calls[0].arguments, tools)


def test_glm_value_without_its_tags_ends_before_the_next_key() -> None:
    text = "<tool_call>get_weather\n<arg_key>city</arg_key>\nRome\n<arg_key>days</arg_key>\n3</tool_call>"
    _check_calls(text, "glm45", {"city": "Rome", "days": 3}, TOOLS)
    assert parse(text, format="glm45", tools=TOOLS).calls
