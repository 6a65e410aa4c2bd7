"""A call that lost one delimiter is read as it was written, or is unreadable; it never runs with other values."""

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


def _arguments(draw: random.Random, words: list[str] = WORDS) -> dict[str, Any]:
    values: dict[str, Any] = {
        "colour": draw.choice(words),  # the tool has no such parameter
        "city": draw.choice(words),
        "note": draw.choice(words),
        "days": draw.randint(1, 99),
        "metric": draw.random() < 0.5,
        "tags": [draw.choice(words) for _ in range(draw.randint(0, 3))],
        "place": {"x": draw.choice(words), "y": draw.randint(1, 9)},
    }
    keys = draw.sample(sorted(values), draw.randint(1, 4))
    return {key: values[key] for key in keys}


def _check(text: str, format: str, arguments: dict[str, Any], tools: Any) -> None:
    calls = parse(text, format=format, tools=tools).calls
    assert not calls or [call.arguments for call in calls] == [arguments], text


@pytest.mark.parametrize("tools", [TOOLS, []], ids=["schema", "no schema"])
@pytest.mark.parametrize("format", TOKENS)
def test_gemma_text_without_one_delimiter_gives_no_other_value(format: str, tools: Any) -> None:
    """Delimiters are the tokens, each of their characters, and brackets, colons and commas outside of texts. Two losses
    are left out, because what remains is a whole call that says something else, and no reader can see that: a comma
    between two bare numbers, whose loss makes one number of them; and a delimiter of a text that holds `,days:` where
    `days` is a parameter of the tool, as the text then reads like the next key."""
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


TAG = re.compile(r"<[^<>\n]+>")
LINE_BREAKS = ["Rome\n", "\nRome"]


@pytest.mark.parametrize("tools", [TOOLS, []], ids=["schema", "no schema"])
@pytest.mark.parametrize("format", [form.name for form in FORMATS if form.name not in TOKENS])
def test_call_without_one_tag_gives_no_other_value(format: str, tools: Any) -> None:
    """Every tag and token of a call is left out once. The values are those of the whole text: without a schema, tags
    give texts. Left out are texts with a line break at an end in formats that write none between their tags (glm47,
    minicpm5, step3): behind a lost tag it may be the model's own, which no reader can tell from the text's."""
    draw = random.Random(f"one tag, {format}")
    words = [*WORDS, *LINE_BREAKS] if "\n" in render([TextCall("get_weather", {"days": 1})], format=format) else WORDS
    for _ in range(60):
        text = render([TextCall("get_weather", _arguments(draw, words))], format=format)
        whole = parse(text, format=format, tools=tools).calls
        assert len(whole) == 1 or not tools, text
        for tag in TAG.finditer(text) if whole else ():
            _check(text[: tag.start()] + text[tag.end() :], format, whole[0].arguments, tools)


def test_glm_value_without_its_tags_ends_before_the_next_key() -> None:
    text = "<tool_call>get_weather\n<arg_key>city</arg_key>\nRome\n<arg_key>days</arg_key>\n3</tool_call>"
    _check(text, "glm45", {"city": "Rome", "days": 3}, TOOLS)
    assert parse(text, format="glm45", tools=TOOLS).calls
