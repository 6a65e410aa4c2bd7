"""Tests of repeated parameters: a list if the schema says so, otherwise a finding."""

import random
from typing import Any

import pytest

from tests.engine.formats.golden_cases import parse_in_chunks
from toolbench.engine.formats import TextCall, parse, render
from toolbench.engine.formats.registry import FORMATS

TAGGED = {
    *("qwen3_coder", "seed_oss", "glm45", "glm47", "longcat", "k2_horizon", "hunyuan_v3"),
    *(
        "deepseek_v32",
        "deepseek_v4",
        "deepseek_v41",
        "step3",
        "kimi_k3",
        "minimax_m2",
        "minimax_m3",
        "minicpm5",
        "dots",
    ),
    *("command4", "anthropic_xml", "anthropic_invoke"),
}
ARRAY = {"type": "array", "items": {"type": "string"}}
MARKER = "]<]minimax[>["


def _build_tools(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "find", "parameters": {"type": "object", "properties": {"tags": schema}}}]


def _measure_common_prefix(first_text: str, second_text: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = zip(first_text, second_text, strict=False)
    return next(
        (index for index, (left, right) in enumerate(pairs) if left != right), min(len(first_text), len(second_text))
    )


def _render_repeated(text_format: str) -> str:
    """Return a call of `find` with the parameter `tags` twice, as "one" and as "two"."""
    without_tags, with_tags = (
        render([TextCall("find", arguments, "0")], format=text_format) for arguments in ({}, {"tags": "one"})
    )
    prefix_length = _measure_common_prefix(without_tags, with_tags)
    suffix_length = _measure_common_prefix(without_tags[prefix_length:][::-1], with_tags[prefix_length:][::-1])
    value = with_tags[prefix_length : len(with_tags) - suffix_length]
    return with_tags[:prefix_length] + value + value.replace("one", "two") + with_tags[len(with_tags) - suffix_length :]


def test_repeated_list_parameter_becomes_list_in_every_tagged_format() -> None:
    parsed_by_format = {
        text_format.name: parse(_render_repeated(text_format.name), format=text_format.name, tools=_build_tools(ARRAY))
        for text_format in FORMATS
    }

    arguments_by_format = {
        name: parsed.calls[0].arguments
        for name, parsed in parsed_by_format.items()
        if parsed.calls and not parsed.findings
    }
    assert arguments_by_format == {name: {"tags": ["one", "two"]} for name in TAGGED}


@pytest.mark.parametrize("text_format", sorted(TAGGED))
@pytest.mark.parametrize("schema", [{"type": "string"}, {}])
def test_repeated_parameter_that_is_no_list_has_a_finding(text_format: str, schema: dict[str, Any]) -> None:
    text, tools = _render_repeated(text_format), _build_tools(schema)

    parsed = parse(text, format=text_format, tools=tools)

    assert parsed.calls[0].arguments == {"tags": "two"}
    assert [finding.code for finding in parsed.findings] == ["parameter_repeated"]
    assert parse_in_chunks(text, text_format, random.Random(text_format), tools) == parsed
    assert parse_in_chunks(text, text_format, 1, tools) == parsed


@pytest.mark.parametrize(
    ("inside", "schema", "arguments", "codes"),
    [
        (
            f"{MARKER}<tags>1{MARKER}</tags>{MARKER}<tags>2{MARKER}</tags>",
            {"type": "array", "items": {"type": "integer"}},
            {"tags": [1, 2]},
            [],
        ),
        (
            f"{MARKER}<tags>{MARKER}<name>a{MARKER}</name>{MARKER}</tags>{MARKER}<tags>{MARKER}<name>b{MARKER}</name>{MARKER}</tags>",
            {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            {"tags": [{"name": "a"}, {"name": "b"}]},
            [],
        ),
        (
            f"{MARKER}<tags>{MARKER}<to>a{MARKER}</to>{MARKER}<to>b{MARKER}</to>{MARKER}</tags>",
            {"type": "object", "properties": {"to": ARRAY}},
            {"tags": {"to": ["a", "b"]}},
            [],
        ),
        (
            f"{MARKER}<tags>{MARKER}<to>a{MARKER}</to>{MARKER}<to>b{MARKER}</to>{MARKER}</tags>",
            {"type": "object", "properties": {"to": {"type": "string"}}},
            {"tags": {"to": "b"}},
            ["parameter_repeated"],
        ),
        (f'{MARKER}<tags>["a"]{MARKER}</tags>{MARKER}<tags>["b"]{MARKER}</tags>', ARRAY, {"tags": ["a", "b"]}, []),
        (
            f"{MARKER}<tags>{MARKER}<any>a{MARKER}</any>{MARKER}</tags>",
            {"type": "array", "items": {"type": "object", "properties": {"any": {}}}},
            {"tags": [{"any": "a"}]},
            [],
        ),
    ],
)
def test_repeated_nested_tags_of_minimax_m3_become_lists(
    inside: str, schema: dict[str, Any], arguments: dict[str, Any], codes: list[str]
) -> None:
    text = f'{MARKER}<tool_call>{MARKER}<invoke name="find">{inside}{MARKER}</invoke>{MARKER}</tool_call>'

    for parsed in (
        parse(text, format="minimax_m3", tools=_build_tools(schema)),
        parse_in_chunks(text, "minimax_m3", 1, _build_tools(schema)),
        parse(text, tools=_build_tools(schema)),
    ):
        assert parsed.calls[0].arguments == arguments
        assert [finding.code for finding in parsed.findings] == codes


@pytest.mark.parametrize(
    ("text_format", "text"),
    [
        ("pythonic", "[find(tags='one', tags='two')]"),
        ("glm45", "<tool_call>find tags=one tags=two</tool_call>"),
        (
            "command4",
            '<cofl:tool_call name="find"><cofl:value name="tags" type="dict">{}{}</cofl:value></cofl:tool_call>',
        ),
    ],
)
def test_other_repetitions_of_a_parameter_have_a_finding(text_format: str, text: str) -> None:
    values = (f'<cofl:value name="x" type="raw">{value}</cofl:value>' for value in ("one", "two"))

    parsed = parse(text.format(*values), format=text_format, tools=_build_tools({"type": ["string", "object"]}))

    assert parsed.calls
    assert "parameter_repeated" in [finding.code for finding in parsed.findings]
