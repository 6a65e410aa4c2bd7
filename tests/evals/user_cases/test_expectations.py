"""Tests of expected calls against the schemas of the tools."""

from typing import Any

from toolbench.evals.user_cases.definition import CaseExpectation, ExpectedCall, UserCase
from toolbench.evals.user_cases.expectations import list_schema_violations

PARAMETERS = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "weight": {"type": "number"}, "to": {"type": "object"}},
    "required": ["order", "weight"],
}


def build_case(arguments: dict[str, Any], *, more: bool = False, **parameters: Any) -> UserCase:
    tool = {"type": "function", "function": {"name": "send", "parameters": PARAMETERS | parameters}}
    return UserCase(
        ({"role": "user", "content": "Go"},), (tool,), CaseExpectation((ExpectedCall("send", arguments, more),))
    )


def test_list_schema_violations_names_the_path_of_each() -> None:
    assert list_schema_violations(build_case({"order": "17", "weight": "x", "wieght": 2})) == (
        'send $.weight: the value is not of type "number"',
        "send $.wieght: is not among the tool's arguments",
    )
    assert list_schema_violations(build_case({"order": "17"})) == ("send $.weight: is required",)


def test_list_schema_violations_ignores_what_matchers_leave_open() -> None:
    anything = {"order": {"$any_of": ["17", "018"]}, "weight": {"$type": "number"}, "to": {"zip": {"$type": "string"}}}
    assert list_schema_violations(build_case(anything)) == ()
    assert list_schema_violations(build_case({"order": "17"}, more=True)) == ()
    assert (
        list_schema_violations(build_case({"order": "17", "weight": 1, "note": "?"}, additionalProperties=True)) == ()
    )
