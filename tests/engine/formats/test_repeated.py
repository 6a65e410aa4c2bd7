"""A parameter that stands in a call twice is a list where its schema says so; else a finding tells it."""

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
MARK = "]<]minimax[>["


def _tools(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "find", "parameters": {"type": "object", "properties": {"tags": schema}}}]


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


def _twice(form: str) -> str:
    """A call of `find` in which the parameter `tags` stands twice, as "one" and as "two"."""
    without, given = (render([TextCall("find", arguments, "0")], format=form) for arguments in ({}, {"tags": "one"}))
    before = _alike(without, given)
    behind = _alike(without[before:][::-1], given[before:][::-1])
    value = given[before : len(given) - behind]
    return given[:before] + value + value.replace("one", "two") + given[len(given) - behind :]


def test_repeated_list_parameter_becomes_list_in_every_tagged_format() -> None:
    read = {form.name: parse(_twice(form.name), format=form.name, tools=_tools(ARRAY)) for form in FORMATS}

    found = {name: parsed.calls[0].arguments for name, parsed in read.items() if parsed.calls and not parsed.findings}
    assert found == {name: {"tags": ["one", "two"]} for name in TAGGED}


@pytest.mark.parametrize("form", sorted(TAGGED))
@pytest.mark.parametrize("schema", [{"type": "string"}, {}])
def test_repeated_parameter_that_is_no_list_has_a_finding(form: str, schema: dict[str, Any]) -> None:
    text, tools = _twice(form), _tools(schema)

    parsed = parse(text, format=form, tools=tools)

    assert parsed.calls[0].arguments == {"tags": "two"}
    assert [finding.code for finding in parsed.findings] == ["parameter_repeated"]
    assert parse_in_chunks(text, form, random.Random(form), tools) == parsed
    assert parse_in_chunks(text, form, 1, tools) == parsed


@pytest.mark.parametrize(
    ("inside", "schema", "arguments", "told"),
    [
        (
            f"{MARK}<tags>1{MARK}</tags>{MARK}<tags>2{MARK}</tags>",
            {"type": "array", "items": {"type": "integer"}},
            {"tags": [1, 2]},
            [],
        ),
        (
            f"{MARK}<tags>{MARK}<name>a{MARK}</name>{MARK}</tags>{MARK}<tags>{MARK}<name>b{MARK}</name>{MARK}</tags>",
            {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            {"tags": [{"name": "a"}, {"name": "b"}]},
            [],
        ),
        (
            f"{MARK}<tags>{MARK}<to>a{MARK}</to>{MARK}<to>b{MARK}</to>{MARK}</tags>",
            {"type": "object", "properties": {"to": ARRAY}},
            {"tags": {"to": ["a", "b"]}},
            [],
        ),
        (
            f"{MARK}<tags>{MARK}<to>a{MARK}</to>{MARK}<to>b{MARK}</to>{MARK}</tags>",
            {"type": "object", "properties": {"to": {"type": "string"}}},
            {"tags": {"to": "b"}},
            ["parameter_repeated"],
        ),
        (f'{MARK}<tags>["a"]{MARK}</tags>{MARK}<tags>["b"]{MARK}</tags>', ARRAY, {"tags": ["a", "b"]}, []),
    ],
)
def test_repeated_nested_tags_of_minimax_m3_become_lists(
    inside: str, schema: dict[str, Any], arguments: dict[str, Any], told: list[str]
) -> None:
    text = f'{MARK}<tool_call>{MARK}<invoke name="find">{inside}{MARK}</invoke>{MARK}</tool_call>'

    for parsed in (
        parse(text, format="minimax_m3", tools=_tools(schema)),
        parse_in_chunks(text, "minimax_m3", 1, _tools(schema)),
        parse(text, tools=_tools(schema)),
    ):
        assert parsed.calls[0].arguments == arguments
        assert [finding.code for finding in parsed.findings] == told


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("pythonic", "[find(tags='one', tags='two')]"),
        ("glm45", "<tool_call>find tags=one tags=two</tool_call>"),
        (
            "command4",
            '<cofl:tool_call name="find"><cofl:value name="tags" type="dict">{}{}</cofl:value></cofl:tool_call>',
        ),
    ],
)
def test_other_repetitions_of_a_parameter_have_a_finding(form: str, text: str) -> None:
    values = (f'<cofl:value name="x" type="raw">{value}</cofl:value>' for value in ("one", "two"))

    parsed = parse(text.format(*values), format=form, tools=_tools({"type": ["string", "object"]}))

    assert parsed.calls
    assert "parameter_repeated" in [finding.code for finding in parsed.findings]
