"""A call that lost one delimiter is read as it was written, or is unreadable; it never runs with other values."""

import random
import re
from typing import Any

import pytest

from tests.engine.formats.cases import TOOLS
from toolbench.engine.formats import TextCall, parse, render
from toolbench.engine.formats.registry import FORMATS
from toolbench.engine.formats.tagged_calls import FirstOf, Tagged

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


def _is_tagged(read: object) -> bool:
    return isinstance(read, Tagged) or (isinstance(read, FirstOf) and any(map(_is_tagged, read.readers)))


def _arguments(draw: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {
        "city": draw.choice(WORDS),
        "note": draw.choice(WORDS),
        "days": draw.randint(1, 99),
        "metric": draw.random() < 0.5,
        "tags": [draw.choice(WORDS) for _ in range(draw.randint(0, 3))],
        "place": {"x": draw.choice(WORDS), "y": draw.randint(1, 9)},
    }
    keys = draw.sample(sorted(values), draw.randint(1, 4))
    return {key: values[key] for key in keys}


def _check(text: str, format: str, arguments: dict[str, Any], tools: Any) -> None:
    calls = parse(text, format=format, tools=tools).calls
    assert not calls or [call.arguments for call in calls] == [arguments], text


@pytest.mark.parametrize("tools", [TOOLS, []], ids=["schema", "no schema"])
@pytest.mark.parametrize("format", TOKENS)
def test_gemma_text_without_one_delimiter_gives_no_other_value(format: str, tools: Any) -> None:
    """Delimiters are the tokens, each of their characters, and brackets, colons and commas outside of texts. Left out
    are commas between two numbers, whose loss makes another number; no reader can see that."""
    draw = random.Random(f"one deletion, {format}")
    quote = TOKENS[format]
    for _ in range(150):
        arguments = _arguments(draw)
        text = render([TextCall("get_weather", arguments)], format=format)
        marks = [found.start() for found in re.finditer(re.escape(quote), text)]
        for mark in marks:
            _check(text[:mark] + text[mark + len(quote) :], format, arguments, tools)
            for at in range(mark, mark + len(quote)):
                _check(text[:at] + text[at + 1 :], format, arguments, tools)
        parts, at = text.split(quote), 0
        for place, part in enumerate(parts):
            for offset in range(len(part) if place % 2 == 0 else 0):
                if part[offset] in "{}[]:,":
                    _check(text[: at + offset] + text[at + offset + 1 :], format, arguments, tools)
            at += len(part) + len(quote)


TAGGED = sorted(form.name for form in FORMATS if any(_is_tagged(block.read) for block in form.blocks))
# Not covered yet: these have other readers, or ends of values without a mark of their own.
OTHERS = {"anthropic_xml", "command4", "functionary_v31", "kimi_k3", "llama3_json", "llama3_python_tag"}
OPENING_TAG = re.compile(r"<[^<>/\n]*(?:parameter|param|arg_key)[^<>\n]*>")


@pytest.mark.parametrize("tools", [TOOLS, []], ids=["schema", "no schema"])
@pytest.mark.parametrize("format", [name for name in TAGGED if name not in OTHERS])
def test_tagged_call_without_an_opening_tag_gives_no_other_value(format: str, tools: Any) -> None:
    arguments = {"city": "Rome", "note": "a,b"}
    text = render([TextCall("get_weather", arguments)], format=format)
    for tag in OPENING_TAG.finditer(text):
        _check(text[: tag.start()] + text[tag.end() :], format, arguments, tools)


def test_glm_value_without_its_tags_ends_before_the_next_key() -> None:
    text = "<tool_call>get_weather\n<arg_key>city</arg_key>\nRome\n<arg_key>days</arg_key>\n3</tool_call>"
    _check(text, "glm45", {"city": "Rome", "days": 3}, TOOLS)
    assert parse(text, format="glm45", tools=TOOLS).calls
