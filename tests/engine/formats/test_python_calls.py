"""Tests of calls in Python syntax: a list is parsed at once if it is valid Python, otherwise call by call."""

from typing import Any

import pytest

from toolbench.engine.formats import parse

TOOLS = [{"name": "f", "parameters": {"properties": {"a": {}, "b": {}}}}, {"name": "a.b", "parameters": {}}]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("[f(1, b='é')]", [("f", {"a": 1, "b": "é"}, "f(1, b='é')")]),
        (
            "[f(a='é'), a.b(x=[1, {'k': None}], y=true)]",
            [
                ("f", {"a": "é"}, "f(a='é')"),
                ("a.b", {"x": [1, {"k": None}], "y": True}, "a.b(x=[1, {'k': None}], y=true)"),
            ],
        ),
        ("[f(a='x\ny')]", [("f", {"a": "x\ny"}, "f(a='x\ny')")]),
        ("[f(a=007)]", [("f", {"a": 7}, "f(a=007)")]),
        (r"[f(a='\d\n')]", [("f", {"a": "\\d\n"}, r"f(a='\d\n')")]),
        ("[f(a=--1)]", [("f", {"a": 1}, "f(a=--1)")]),
        ("[f(a=1),\n f(2)]", [("f", {"a": 1}, "f(a=1)"), ("f", {"a": 2}, "f(2)")]),
    ],
)
def test_parse_pythonic_returns_calls_with_their_raw_text(
    text: str, calls: list[tuple[str, dict[str, Any], str]]
) -> None:
    parsed = parse(text, format="pythonic", tools=TOOLS)

    assert [(call.name, call.arguments, call.raw_text) for call in parsed.calls] == calls


@pytest.mark.parametrize(
    "text",
    [
        "[(f(a=1))]",
        "[f(a=1)(b=2)]",
        "[a.b().c(x=1)]",
        "[f(**{'a': 1})]",
        "[f(*[1])]",
        "[f(a=1) # x]",
        "[ｆ(a=1)]",
        "[f(a=g())]",
        "[f(a=b'x')]",
        "[f(1, 2, 3)]",
        "[f(a=" + "-" * 5000 + "1)]",
        "[f(a=" + "[" * 200 + "]" * 200 + ")]",
    ],
)
def test_parse_pythonic_keeps_other_text_as_text(text: str) -> None:
    parsed = parse(text, format="pythonic", tools=TOOLS)

    assert parsed.calls == ()
    assert parsed.text == text


def test_parse_pythonic_reads_call_with_long_name() -> None:
    name = ".".join(["website_configuration"] * 5)
    parsed = parse(f"[{name}(a=1)]", format="pythonic", tools=[{"name": name, "parameters": {}}])

    assert [call.name for call in parsed.calls] == [name]


def test_parse_pythonic_reads_200000_escaped_quotes_once() -> None:
    text = "<|python_start|>[f(a=" + '\\"' * 200_000 + "x)]<|python_end|>"
    assert [finding.code for finding in parse(text, format="llama4", tools=TOOLS).findings] == ["call_unreadable"]
