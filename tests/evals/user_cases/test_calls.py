from tests.evals.records import calling, ended, result
from toolbench.engine.events import ToolResult
from toolbench.evals.user_cases.calls import checks_of, compare
from toolbench.evals.user_cases.definition import Expected, ExpectedCall

A, B = ExpectedCall("move", {"to": "a"}), ExpectedCall("move", {"to": "b"})


def wrong(expect: Expected, *results: ToolResult) -> list[str]:
    """Names of the checks that do not hold."""
    comparison = compare(expect, ended(calling(0, *results)))
    return [check.name for check in checks_of(comparison, others=expect.others) if not check.ok]


def move(to: object, **rest: object) -> ToolResult:
    return result("move", {"to": to, **rest})


def test_calls_are_paired_so_that_as_few_arguments_as_possible_are_wrong() -> None:
    assert wrong(Expected(calls=(A, B)), move("b"), move("a")) == []
    assert wrong(Expected(calls=(A, B)), move("b"), move("c")) == ["move (1) $.to"]


def test_in_order_each_takes_the_next_call_of_its_tool() -> None:
    assert wrong(Expected(calls=(A, B), ordered=True), move("b"), move("a")) == ["move (1) $.to", "move (2) $.to"]


def test_a_failed_call_that_a_later_one_makes_good_is_passed_over() -> None:
    failed = result("move", {"to": "x"}, code="TOOL_FAILED")
    assert wrong(Expected(calls=(A,)), failed, move("a")) == []
    assert wrong(Expected(calls=(A,)), move("a"), result("stop", {})) == ["no other call"]
    assert wrong(Expected(calls=(A,), others=True), move("a"), result("stop", {})) == []


def test_an_argument_nobody_asked_for_is_wrong_unless_more_are_allowed() -> None:
    assert wrong(Expected(calls=(A,)), move("a", fast=True)) == ["move $.fast"]
    assert wrong(Expected(calls=(ExpectedCall("move", {"to": "a"}, more=True),)), move("a", fast=True)) == []
