"""A list of calls is read in one go where it is Python as it stands, and call by call where it is not; both say the
same."""

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
def test_python_calls_are_read_with_their_raw_text(text: str, calls: list[tuple[str, dict[str, Any], str]]) -> None:
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
def test_text_that_is_no_list_of_plain_calls_stays_text(text: str) -> None:
    parsed = parse(text, format="pythonic", tools=TOOLS)

    assert parsed.calls == ()
    assert parsed.text == text


def test_call_with_long_name_is_read() -> None:
    name = ".".join(["website_configuration"] * 5)
    parsed = parse(f"[{name}(a=1)]", format="pythonic", tools=[{"name": name, "parameters": {}}])

    assert [call.name for call in parsed.calls] == [name]
