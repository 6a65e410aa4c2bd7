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


def build_document(**changes: Any) -> dict[str, Any]:
    call = {"name": "get_weather", "arguments": {"city": "Berlin"}}
    return {"tools": [WEATHER], "messages": "How is the weather in Berlin?", "expect": call} | changes


def list_problems(**changes: Any) -> list[CaseProblem]:
    with pytest.raises(InvalidCaseError) as caught:
        parse_case(build_document(**changes))
    return list(caught.value.problems)


def test_parse_case_accepts_a_text_one_call_and_one_function() -> None:
    case = parse_case(build_document(tools=WEATHER["function"]))
    assert case.messages == ({"role": "user", "content": "How is the weather in Berlin?"},)
    assert case.tools == (WEATHER,)
    assert case.expect.calls[0].arguments == {"city": "Berlin"}


def test_case_to_json_is_parsed_to_the_same_case() -> None:
    case = parse_case(
        build_document(
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
def test_parse_case_problem_has_its_place(changes: dict[str, Any], place: tuple[str | int, ...]) -> None:
    assert place in [problem.place for problem in list_problems(**changes)]


@pytest.mark.parametrize("key", ["arguments", "more", "loose"])
def test_parse_case_refuses_keys_of_a_call_beside_calls(key: str) -> None:
    [problem] = list_problems(expect={"calls": [{"name": "get_weather"}], key: True})
    assert problem.place == ("expect", key)
    assert problem.message.endswith(f"Write {key} into a call.")


def test_parse_case_reports_several_problems_at_once() -> None:
    assert len(list_problems(tools=[], messages="", expect={})) >= 3


@pytest.mark.parametrize("value", [None, 1, "text", [], [[]], {"tools": {"x": 1}}, {"messages": [1], "expect": [1]}])
def test_parse_case_refuses_any_other_value(value: Any) -> None:
    with pytest.raises(InvalidCaseError):
        parse_case(value)
