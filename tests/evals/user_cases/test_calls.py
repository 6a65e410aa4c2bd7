from tests.evals.records import build_calling_turn, build_ended, build_result
from toolbench.engine.events import ToolResult
from toolbench.evals.user_cases.calls import compare_calls, iter_checks
from toolbench.evals.user_cases.definition import CaseExpectation, ExpectedCall

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


def test_compare_calls_ordered_pairs_next_call_of_its_tool() -> None:
    assert list_failed_checks(CaseExpectation(calls=(A, B), ordered=True), move("b"), move("a")) == [
        "move (1) $.to",
        "move (2) $.to",
    ]


def test_compare_calls_ignores_a_failed_call_that_was_corrected() -> None:
    failed = build_result("move", {"to": "x"}, code="TOOL_FAILED")
    assert list_failed_checks(CaseExpectation(calls=(A,)), failed, move("a")) == []
    assert list_failed_checks(CaseExpectation(calls=(A,)), move("a"), build_result("stop", {})) == ["no other call"]
    assert list_failed_checks(CaseExpectation(calls=(A,), others=True), move("a"), build_result("stop", {})) == []


def test_compare_calls_extra_argument_is_wrong_unless_allowed() -> None:
    assert list_failed_checks(CaseExpectation(calls=(A,)), move("a", fast=True)) == ["move $.fast"]
    assert (
        list_failed_checks(CaseExpectation(calls=(ExpectedCall("move", {"to": "a"}, more=True),)), move("a", fast=True))
        == []
    )
