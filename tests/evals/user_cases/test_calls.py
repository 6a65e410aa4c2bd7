import pytest

from tests.evals.records import build_calling_turn, build_ended, build_result
from toolbench.engine.events import ToolResult
from toolbench.engine.types import SchemaError
from toolbench.evals.user_cases.calls import build_expected_calls, compare_calls, iter_checks
from toolbench.evals.user_cases.definition import CaseExpectation, ExpectedCall, UserCase

A, B = ExpectedCall("move", {"to": "a"}), ExpectedCall("move", {"to": "b"})


def list_failed_checks(expect: CaseExpectation, *results: ToolResult) -> list[str]:
    """Return the names of the checks that fail."""
    comparison = compare_calls(expect, build_ended(build_calling_turn(0, *results)))
    return [check.name for check in iter_checks(comparison, are_others_allowed=expect.others) if not check.ok]


def move(to: object, **rest: object) -> ToolResult:
    return build_result("move", {"to": to, **rest})


def test_compare_calls_pairs_with_fewest_wrong_arguments() -> None:
    assert list_failed_checks(CaseExpectation(calls=(A, B)), move("b"), move("a")) == []
    assert list_failed_checks(CaseExpectation(calls=(A, B)), move("b"), move("c")) == ["move (1) $.to"]


def test_compare_calls_ordered_pairs_with_fewest_wrong_arguments() -> None:
    assert list_failed_checks(CaseExpectation(calls=(A, B), ordered=True), move("a"), move("b")) == []
    others = CaseExpectation(calls=(A, B), ordered=True, others=True)
    assert list_failed_checks(others, move("c"), move("a"), move("c"), move("b"), move("a")) == []
    assert list_failed_checks(others, move("b"), move("a")) == ["move (1) $.to", "move (2) $.to"]


def test_compare_calls_ordered_reverse_order_is_wrong() -> None:
    assert list_failed_checks(CaseExpectation(calls=(A, B), ordered=True), move("b"), move("a")) == [
        "move (1) $.to",
        "move (2) $.to",
    ]


@pytest.mark.parametrize(
    "refused",
    [
        build_result("move", "{", parse_status="invalid_json", code="ARGUMENTS_JSON_PARSE_ERROR"),
        build_result("move", "{", parse_status="too_large", code="ARGUMENTS_TOO_LARGE"),
        build_result("move", {"at": 1}, code="ARGUMENT_ERROR", schema_errors=[SchemaError("$.at", "extra", "")]),
        build_result("move", {}, code="TOOL_NOT_ALLOWED"),
    ],
)
def test_compare_calls_refused_call_is_not_an_expected_one(refused: ToolResult) -> None:
    expect = CaseExpectation(calls=(ExpectedCall("move", more=True),))
    assert list_failed_checks(expect, refused) == ["move is called", "no other call"]
    assert list_failed_checks(expect, refused, move("a")) == []
    comparison = compare_calls(expect, build_ended(build_calling_turn(0, refused)))
    assert next(iter_checks(comparison, are_others_allowed=True)).detail == "its call is not valid"


def test_compare_calls_call_that_its_tool_refuses_is_an_expected_one() -> None:
    failed = build_result("move", {"to": "a"}, code="TOOL_FAILED")
    assert list_failed_checks(CaseExpectation(calls=(A,)), failed) == []


def test_compare_calls_ignores_a_failed_call_that_was_corrected() -> None:
    failed = build_result("move", {"to": "x"}, code="TOOL_FAILED")
    assert list_failed_checks(CaseExpectation(calls=(A,)), failed, move("a")) == []
    assert list_failed_checks(CaseExpectation(calls=(A,)), move("a"), build_result("stop", {})) == ["no other call"]
    assert list_failed_checks(CaseExpectation(calls=(A,), others=True), move("a"), build_result("stop", {})) == []


def test_compare_calls_failed_call_counts_beside_one_that_succeeded() -> None:
    failed, wrong = build_result("move", {"to": "a"}, code="TOOL_FAILED"), build_result("move", {}, code="TOOL_FAILED")
    for made in ((failed, move("b")), (wrong, failed, move("b")), (failed, failed, move("b"), move("a"))):
        assert list_failed_checks(CaseExpectation(calls=(A, B)), *made) == []
    assert list_failed_checks(CaseExpectation(calls=(A, B), ordered=True), wrong, move("a")) == ["move (2) is called"]
    assert list_failed_checks(CaseExpectation(calls=(A,)), failed, move("b")) == ["no other call"]


def test_compare_calls_extra_argument_is_wrong_unless_allowed() -> None:
    assert list_failed_checks(CaseExpectation(calls=(A,)), move("a", fast=True)) == ["move $.fast"]
    assert (
        list_failed_checks(CaseExpectation(calls=(ExpectedCall("move", {"to": "a"}, more=True),)), move("a", fast=True))
        == []
    )


def test_build_expected_calls_with_huge_times_names_a_thousand_calls() -> None:
    expect = CaseExpectation(calls=(A,), checks=({"called": "move", "times": 10**7},))
    assert build_expected_calls(UserCase((), (), expect)).tools == ("move",) * 1000
