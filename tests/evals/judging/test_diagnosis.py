"""Tests of the problems of a finished run, their order, and recovery from them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.evals.records import build_calling_turn, build_ended, build_failed_turn, build_result, build_text_turn
from toolbench.engine.events import ExchangeError, LoopResult
from toolbench.engine.types import SchemaError
from toolbench.evals.judging.diagnosis import (
    BROKEN_SCHEMA_CLASS,
    Problem,
    find_first_problem,
    find_last_turn,
    iter_problems,
)
from toolbench.evals.scenarios.tools import load_state_tools

TOOLS = load_state_tools()


def test_problems_come_in_the_order_of_their_steps() -> None:
    broken = build_result("state_get", "{", code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")
    stranger = build_result("state_drop", {}, code="TOOL_NOT_ALLOWED")
    record = build_ended(build_calling_turn(0, broken, stranger), build_text_turn(1, ""))
    assert [
        (problem.failure_class, problem.location.turn, problem.location.call)
        for problem in iter_problems(record, TOOLS)
    ] == [
        ("arguments_not_json", 0, 0),
        ("unknown_tool", 0, 1),
        ("empty_final", 1, None),
    ]
    assert [problem.location.sentence for problem in iter_problems(record, TOOLS)] == [
        "Turn 1, parsed call 1: the arguments of state_get are not a JSON object.",
        'Turn 1, parsed call 2: there is no tool called "state_drop".',
        "Turn 2: the answer after the calls is empty: no visible text and no call.",
    ]


def test_a_later_success_of_the_same_tool_mends_a_failed_call() -> None:
    failed = build_result("state_get", {}, code="INTERNAL_ERROR")
    assert (
        find_first_problem(
            build_ended(build_calling_turn(0, failed), build_calling_turn(1, build_result("state_get", {}))), TOOLS
        )
        is None
    )
    assert (
        find_first_problem(
            build_ended(build_calling_turn(0, failed), build_calling_turn(1, build_result("state_patch", {}))), TOOLS
        )
        is not None
    )


def test_a_success_beside_it_in_the_same_message_mends_it_too() -> None:
    failed = build_result("state_get", {}, code="INTERNAL_ERROR")
    assert find_first_problem(build_ended(build_calling_turn(0, failed, build_result("state_get", {}))), TOOLS) is None
    assert (
        find_first_problem(build_ended(build_calling_turn(0, build_result("state_get", {}), failed)), TOOLS) is not None
    )


def test_blank_answer_is_recovered_by_the_next_text() -> None:
    assert (
        find_first_problem(
            build_ended(
                build_calling_turn(0, build_result("state_get", {})),
                build_text_turn(1, " "),
                build_text_turn(2, "Done."),
            ),
            TOOLS,
        )
        is None
    )


def test_failed_request_is_recovered_by_its_retry() -> None:
    error = ExchangeError("tools_unsupported", "no tools here", 400, infrastructure=False, tool_support=True)
    mended, left = (
        find_first_problem(build_ended(build_failed_turn(0, error), build_text_turn(0, "Hi")), TOOLS),
        find_first_problem(build_ended(build_failed_turn(0, error)), TOOLS),
    )
    assert mended is None
    assert left is not None
    assert (left.failure_class, left.location.sentence) == ("tools_not_supported", "Turn 1: no tools here")


def test_an_answer_cut_after_a_good_call_is_no_problem() -> None:
    assert (
        find_first_problem(build_ended(build_calling_turn(0, build_result("state_get", {}), finish="length")), TOOLS)
        is None
    )


def test_thousands_of_failed_calls_in_one_answer_are_looked_at_once() -> None:
    failed = build_result("state_get", {}, code="INTERNAL_ERROR")
    record = build_ended(build_calling_turn(0, *[failed] * 5_000), build_calling_turn(1, build_result("state_get", {})))
    assert all(problem.recovered for problem in iter_problems(record, TOOLS))


ONLY_ERROR = build_result("state_patch", {}, code="ARGUMENT_ERROR")


def only(record: LoopResult, *, expected_codes: Sequence[str] = ()) -> Problem:
    found = find_first_problem(record, TOOLS, expected_codes=expected_codes)
    assert found is not None
    return found


def test_an_expected_error_without_a_good_call_is_given_up_where_calls_end() -> None:
    record = build_ended(
        build_calling_turn(0, build_result("state_get", {})),
        build_calling_turn(1, ONLY_ERROR),
        build_calling_turn(2, build_result("state_get", {})),
        build_text_turn(3, "No."),
        build_text_turn(4, "Done."),
    )
    found = only(record, expected_codes=["ARGUMENT_ERROR"])
    assert (found.failure_class, found.code, found.recovered) == ("gave_up_after_error", "ARGUMENT_ERROR", False)
    assert found.location.sentence == "Turn 4: no call makes good the ARGUMENT_ERROR of turn 2."


def test_a_run_that_calls_to_its_end_gives_up_in_its_last_turn() -> None:
    found = only(
        build_ended(
            build_text_turn(0, "Hm."),
            build_calling_turn(1, ONLY_ERROR),
            build_calling_turn(2, ONLY_ERROR),
            build_calling_turn(3, build_result("state_get", {})),
        ),
        expected_codes=["ARGUMENT_ERROR"],
    )
    assert found.location.sentence == "Turn 4: no call makes good the ARGUMENT_ERROR of turn 2."


def test_a_broken_schema_is_a_problem_even_where_its_code_is_expected() -> None:
    errors = [SchemaError("$.ops", "missing", ""), SchemaError("$.request_id", "missing", "")]
    broken = build_result("state_patch", {}, code="ARGUMENT_ERROR", schema_errors=errors)
    found = only(build_ended(build_calling_turn(0, broken)), expected_codes=["ARGUMENT_ERROR"])
    assert (found.failure_class, found.location.path) == (BROKEN_SCHEMA_CLASS, "$.ops")
    assert found.location.sentence == "Turn 1, parsed call 1: $.ops is missing; state_patch needs it."


def test_schema_errors_of_a_tool_nobody_has_are_told_by_their_code() -> None:
    broken = build_result("gone", {}, code="ARGUMENT_ERROR", schema_errors=[SchemaError("$", "missing", "")])
    assert only(build_ended(build_calling_turn(0, broken))).failure_class == "arguments_refused"


def test_a_failed_call_is_told_with_its_first_code_and_message() -> None:
    failed = build_result("state_get", {}, code="INTERNAL_ERROR")
    errors = (*failed.envelope.errors, {"code": "OTHER", "message": "later"})
    two = replace(failed, envelope=replace(failed.envelope, errors=errors))
    found = only(build_ended(build_calling_turn(0, two)))
    assert found.code == "INTERNAL_ERROR"
    assert found.location.sentence == "Turn 1, parsed call 1: state_get failed: INTERNAL_ERROR in words."
    silent = replace(failed, envelope=replace(failed.envelope, errors=()))
    found = only(build_ended(build_calling_turn(0, silent)))
    assert found.code == ""
    assert found.location.sentence == "Turn 1, parsed call 1: state_get failed: it gave no reason."


@pytest.mark.parametrize(
    ("text", "finding", "expected"),
    [
        ("<tool_call>", "call_in_text", "call_in_tags"),
        ("state_get()", "call_in_text", "text_instead_of_call"),
        ("<tool_call>", "stream_cut", "stream_cut"),
        ("state_get()", "stream_cut", "stream_cut"),
    ],
)
def test_a_call_in_tags_is_a_class_of_its_own(text: str, finding: str, expected: str) -> None:
    found = only(build_ended(build_text_turn(0, text, finding=finding)))
    assert found.failure_class == expected
    assert found.location.sentence == f"Turn 1: the engine found {finding}."


def test_a_harmless_finding_is_no_problem() -> None:
    assert find_first_problem(build_ended(build_text_turn(0, "Done.", finding="prose_around_call")), TOOLS) is None


def test_what_came_before_mends_nothing() -> None:
    good = build_calling_turn(0, build_result("state_get", {}))
    assert (
        only(build_ended(good, build_text_turn(1, "state_get()", finding="call_in_text"))).failure_class
        == "text_instead_of_call"
    )
    assert only(build_ended(good, build_text_turn(1, "cut", finish="length"))).failure_class == "cut_by_length"
    assert only(build_ended(build_text_turn(0, "Hi"), build_text_turn(1, " "))).failure_class == "empty_answer"


def test_a_good_call_in_the_next_turn_mends_an_answer() -> None:
    good = build_calling_turn(1, build_result("state_get", {}))
    assert (
        find_first_problem(build_ended(build_text_turn(0, "state_get()", finding="call_in_text"), good), TOOLS) is None
    )
    assert find_first_problem(build_ended(build_text_turn(0, "cut", finish="length"), good), TOOLS) is None


def test_blank_answer_is_not_recovered_by_another() -> None:
    assert only(build_ended(build_text_turn(0, ""), build_text_turn(1, " \n"))).location.turn == 0
    assert (
        find_first_problem(
            build_ended(build_text_turn(0, ""), build_calling_turn(1, build_result("state_get", {}))), TOOLS
        )
        is None
    )


def test_the_last_turn_is_that_of_the_last_record() -> None:
    assert find_last_turn(build_ended()) == 0
    assert (
        find_last_turn(
            build_ended(
                build_text_turn(0, "a"), build_text_turn(1, "b"), build_text_turn(2, "c"), build_text_turn(4, "d")
            )
        )
        == 4
    )


def test_a_retry_of_the_same_turn_is_not_where_a_model_gave_up() -> None:
    error = ExchangeError("tools_unsupported", "no tools here", 400, infrastructure=False, tool_support=True)
    record = build_ended(build_failed_turn(1, error), build_calling_turn(1, ONLY_ERROR), build_text_turn(2, "No."))
    assert only(record, expected_codes=["ARGUMENT_ERROR"]).location.turn == 2
