from typing import Any

import pytest

from toolbench.evals.user_cases.definition import case_to_json
from toolbench.evals.user_cases.parse import CaseProblem, InvalidCaseError, parse_case

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def told(**changes: Any) -> dict[str, Any]:
    call = {"name": "get_weather", "arguments": {"city": "Berlin"}}
    return {"tools": [WEATHER], "messages": "How is the weather in Berlin?", "expect": call} | changes


def faults(**changes: Any) -> list[CaseProblem]:
    with pytest.raises(InvalidCaseError) as caught:
        parse_case(told(**changes))
    return list(caught.value.problems)


def test_a_bare_text_a_lone_call_and_a_lone_function_are_enough() -> None:
    case = parse_case(told(tools=WEATHER["function"]))
    assert case.messages == ({"role": "user", "content": "How is the weather in Berlin?"},)
    assert case.tools == (WEATHER,)
    assert case.expect.calls[0].arguments == {"city": "Berlin"}


def test_what_is_written_out_is_read_back_the_same() -> None:
    case = parse_case(
        told(
            expect={"calls": [{"name": "get_weather", "more": True}], "ordered": True, "state": {"/a": 1}},
            results={"get_weather": {"fixed": {"sky": "clear"}, "set": {"/a": "$city"}}},
            initial={"a": 0},
            turns=3,
            parallel=True,
        )
    )
    assert parse_case(case_to_json(case)) == case


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"tools": []}, ("tools",)),
        ({"tools": [WEATHER, WEATHER]}, ("tools", 1)),
        ({"tools": [{"name": "f", "parameters": {"type": "text"}}]}, ("tools", 0, "function", "parameters")),
        ({"messages": " "}, ("messages",)),
        ({"messages": [{"role": "boss", "content": "x"}]}, ("messages", 0)),
        ({"expect": None}, ("expect",)),
        ({"expect": {"calls": []}}, ("expect",)),
        ({"expect": {"name": "no_such_tool"}}, ("expect", "calls", 0, "name")),
        (
            {"expect": {"name": "get_weather", "arguments": {"city": {"$any_of": []}}}},
            ("expect", "calls", 0, "arguments", "city", "$any_of"),
        ),
        ({"expect": {"checks": [{"answer_matches": ".*"}]}}, ("expect", "checks", 0)),
        ({"expect": {"state": {"a": 1}}}, ("expect", "state")),
        ({"results": {"get_weather": {"run": "rm"}}}, ("results", "get_weather")),
        ({"turns": 0}, ("turns",)),
        ({"code": "import os"}, ("code",)),
    ],
)
def test_every_fault_is_said_with_its_place(changes: dict[str, Any], place: tuple[str | int, ...]) -> None:
    assert place in [fault.place for fault in faults(**changes)]


def test_several_faults_are_said_at_once() -> None:
    assert len(faults(tools=[], messages="", expect={})) >= 3


@pytest.mark.parametrize("value", [None, 1, "text", [], [[]], {"tools": {"x": 1}}, {"messages": [1], "expect": [1]}])
def test_whatever_is_sent_is_refused_in_words(value: Any) -> None:
    with pytest.raises(InvalidCaseError):
        parse_case(value)
