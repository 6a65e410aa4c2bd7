from tests.evals.records import build_calling_turn, build_ended, build_result
from toolbench.engine.events import ToolResult
from toolbench.evals.user_cases.calls import compare_calls, iter_checks
from toolbench.evals.user_cases.definition import CaseExpectation, ExpectedCall

A, B = ExpectedCall("move", {"to": "a"}), ExpectedCall("move", {"to": "b"})


def wrong(expect: CaseExpectation, *results: ToolResult) -> list[str]:
    """Names of the checks that do not hold."""
    comparison = compare_calls(expect, build_ended(build_calling_turn(0, *results)))
    return [check.name for check in iter_checks(comparison, are_others_allowed=expect.others) if not check.ok]


def move(to: object, **rest: object) -> ToolResult:
    return build_result("move", {"to": to, **rest})


def test_calls_are_paired_so_that_as_few_arguments_as_possible_are_wrong() -> None:
    assert wrong(CaseExpectation(calls=(A, B)), move("b"), move("a")) == []
    assert wrong(CaseExpectation(calls=(A, B)), move("b"), move("c")) == ["move (1) $.to"]


def test_in_order_each_takes_the_next_call_of_its_tool() -> None:
    assert wrong(CaseExpectation(calls=(A, B), ordered=True), move("b"), move("a")) == [
        "move (1) $.to",
        "move (2) $.to",
    ]


def test_a_failed_call_that_a_later_one_makes_good_is_passed_over() -> None:
    failed = build_result("move", {"to": "x"}, code="TOOL_FAILED")
    assert wrong(CaseExpectation(calls=(A,)), failed, move("a")) == []
    assert wrong(CaseExpectation(calls=(A,)), move("a"), build_result("stop", {})) == ["no other call"]
    assert wrong(CaseExpectation(calls=(A,), others=True), move("a"), build_result("stop", {})) == []


def test_an_argument_nobody_asked_for_is_wrong_unless_more_are_allowed() -> None:
    assert wrong(CaseExpectation(calls=(A,)), move("a", fast=True)) == ["move $.fast"]
    assert wrong(CaseExpectation(calls=(ExpectedCall("move", {"to": "a"}, more=True),)), move("a", fast=True)) == []
