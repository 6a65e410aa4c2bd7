"""Strings that begin with an apostrophe, and names of types, in the formats of Gemma."""

from typing import Any

import pytest

from toolbench.engine.formats import parse, render_tools

QUOTE = '<|"|>'
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}]


def parse_arguments(arguments: str) -> tuple[list[Any], list[str]]:
    """Parse a call of Gemma 4, in whose arguments `~` stands for the token around a string.

    Returns:
        The arguments of each call, and the codes of the findings.
    """
    text = f"<|tool_call>call:f{arguments.replace('~', QUOTE)}<tool_call|>"
    parsed_text = parse(text, format="gemma4", tools=TOOLS)
    return [call.arguments for call in parsed_text.calls], [finding.code for finding in parsed_text.findings]


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ("{a:'x~}", {"a": "x"}),
        ("{a:'x~,b:~~}", {"a": "x", "b": ""}),
        ("{a:~~,b:'x~}", {"a": "", "b": "x"}),
        ("{a:['x~,~~,~y~]}", {"a": ["x", "", "y"]}),
    ],
)
def test_gemma_string_after_apostrophe_is_read_with_finding(arguments: str, values: dict[str, Any]) -> None:
    assert parse_arguments(arguments) == ([values], ["delimiter_missing"])


@pytest.mark.parametrize("arguments", ["{a:'x~~y~}", "{a:~x~'y~}", "{a:~x~~y~}", "{a:~x~~y~~z~}"])
def test_gemma_call_with_adjoining_strings_is_unreadable(arguments: str) -> None:
    assert parse_arguments(arguments) == ([], ["call_unreadable"])


def test_gemma_string_with_apostrophe_inside_has_no_finding() -> None:
    assert parse_arguments("{a:~it's~,b:~'~}") == ([{"a": "it's", "b": "'"}], [])


def test_gemma_declaration_has_type_names_in_capitals_but_not_data() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "default": {"type": "big"}},
            "type": {"type": "string", "enum": ["big"], "examples": [{"type": "big"}]},
            "default": {"anyOf": [{"type": "integer"}, {"const": {"type": "big"}}]},
        },
    }
    prompt = render_tools([{"name": "f", "parameters": schema}], format="gemma4").replace(QUOTE, "~")
    assert prompt == (
        "<|tool>declaration:f{parameters:{type:~OBJECT~,properties:{"
        "a:{type:[~STRING~,~NULL~],default:{type:~big~}},"
        "type:{type:~STRING~,enum:[~big~],examples:[{type:~big~}]},"
        "default:{anyOf:[{type:~INTEGER~},{const:{type:~big~}}]}}}}<tool|>"
    )
