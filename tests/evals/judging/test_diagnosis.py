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


def test_iter_problems_follows_the_order_of_steps() -> None:
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


def test_find_first_problem_failed_call_recovered_by_same_tool() -> None:
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


def test_find_first_problem_failed_call_recovered_in_same_message() -> None:
    failed = build_result("state_get", {}, code="INTERNAL_ERROR")
    assert find_first_problem(build_ended(build_calling_turn(0, failed, build_result("state_get", {}))), TOOLS) is None
    assert (
        find_first_problem(build_ended(build_calling_turn(0, build_result("state_get", {}), failed)), TOOLS) is not None
    )


def test_find_first_problem_blank_answer_recovered_by_next_text() -> None:
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


def test_find_first_problem_failed_request_recovered_by_retry() -> None:
    error = ExchangeError("tools_unsupported", "no tools here", 400, infrastructure=False, tool_support=True)
    recovered, unrecovered = (
        find_first_problem(build_ended(build_failed_turn(0, error), build_text_turn(0, "Hi")), TOOLS),
        find_first_problem(build_ended(build_failed_turn(0, error)), TOOLS),
    )
    assert recovered is None
    assert unrecovered is not None
    assert (unrecovered.failure_class, unrecovered.location.sentence) == (
        "tools_not_supported",
        "Turn 1: no tools here",
    )


def test_find_first_problem_ignores_truncation_after_a_good_call() -> None:
    assert (
        find_first_problem(build_ended(build_calling_turn(0, build_result("state_get", {}), finish="length")), TOOLS)
        is None
    )


def test_iter_problems_one_success_recovers_5000_failed_calls() -> None:
    failed = build_result("state_get", {}, code="INTERNAL_ERROR")
    record = build_ended(build_calling_turn(0, *[failed] * 5_000), build_calling_turn(1, build_result("state_get", {})))
    assert [problem.recovered for problem in iter_problems(record, TOOLS)] == [True] * 5_000


ONLY_ERROR = build_result("state_patch", {}, code="ARGUMENT_ERROR")


def find_problem(record: LoopResult, *, expected_codes: Sequence[str] = ()) -> Problem:
    found = find_first_problem(record, TOOLS, expected_codes=expected_codes)
    assert found is not None
    return found


def test_find_first_problem_expected_error_gave_up_where_calls_end() -> None:
    record = build_ended(
        build_calling_turn(0, build_result("state_get", {})),
        build_calling_turn(1, ONLY_ERROR),
        build_calling_turn(2, build_result("state_get", {})),
        build_text_turn(3, "No."),
        build_text_turn(4, "Done."),
    )
    found = find_problem(record, expected_codes=["ARGUMENT_ERROR"])
    assert (found.failure_class, found.code, found.recovered) == ("gave_up_after_error", "ARGUMENT_ERROR", False)
    assert found.location.sentence == "Turn 4: no later call recovers from the ARGUMENT_ERROR of turn 2."


def test_find_first_problem_calls_to_the_end_gave_up_in_last_turn() -> None:
    found = find_problem(
        build_ended(
            build_text_turn(0, "Hm."),
            build_calling_turn(1, ONLY_ERROR),
            build_calling_turn(2, ONLY_ERROR),
            build_calling_turn(3, build_result("state_get", {})),
        ),
        expected_codes=["ARGUMENT_ERROR"],
    )
    assert found.location.sentence == "Turn 4: no later call recovers from the ARGUMENT_ERROR of turn 2."


def test_find_first_problem_schema_error_counts_although_expected() -> None:
    errors = [SchemaError("$.ops", "missing", ""), SchemaError("$.request_id", "missing", "")]
    broken = build_result("state_patch", {}, code="ARGUMENT_ERROR", schema_errors=errors)
    found = find_problem(build_ended(build_calling_turn(0, broken)), expected_codes=["ARGUMENT_ERROR"])
    assert (found.failure_class, found.location.path) == (BROKEN_SCHEMA_CLASS, "$.ops")
    assert found.location.sentence == "Turn 1, parsed call 1: $.ops is missing; state_patch needs it."


def test_find_first_problem_unknown_tool_is_classified_by_code() -> None:
    broken = build_result("gone", {}, code="ARGUMENT_ERROR", schema_errors=[SchemaError("$", "missing", "")])
    assert find_problem(build_ended(build_calling_turn(0, broken))).failure_class == "arguments_refused"


def test_find_first_problem_failed_call_has_first_code_and_message() -> None:
    failed = build_result("state_get", {}, code="INTERNAL_ERROR")
    errors = (*failed.envelope.errors, {"code": "OTHER", "message": "later"})
    two = replace(failed, envelope=replace(failed.envelope, errors=errors))
    found = find_problem(build_ended(build_calling_turn(0, two)))
    assert found.code == "INTERNAL_ERROR"
    assert found.location.sentence == "Turn 1, parsed call 1: state_get failed: INTERNAL_ERROR in words."
    silent = replace(failed, envelope=replace(failed.envelope, errors=()))
    found = find_problem(build_ended(build_calling_turn(0, silent)))
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
def test_find_first_problem_call_in_tags_has_its_own_class(text: str, finding: str, expected: str) -> None:
    found = find_problem(build_ended(build_text_turn(0, text, finding=finding)))
    assert found.failure_class == expected
    assert found.location.sentence == f"Turn 1: the engine found {finding}."


def test_find_first_problem_ignores_a_harmless_finding() -> None:
    assert find_first_problem(build_ended(build_text_turn(0, "Done.", finding="prose_around_call")), TOOLS) is None


def test_find_first_problem_earlier_success_recovers_nothing() -> None:
    good = build_calling_turn(0, build_result("state_get", {}))
    assert (
        find_problem(build_ended(good, build_text_turn(1, "state_get()", finding="call_in_text"))).failure_class
        == "text_instead_of_call"
    )
    assert find_problem(build_ended(good, build_text_turn(1, "cut", finish="length"))).failure_class == "cut_by_length"
    assert find_problem(build_ended(build_text_turn(0, "Hi"), build_text_turn(1, " "))).failure_class == "empty_answer"


def test_find_first_problem_answer_recovered_by_call_in_next_turn() -> None:
    good = build_calling_turn(1, build_result("state_get", {}))
    assert (
        find_first_problem(build_ended(build_text_turn(0, "state_get()", finding="call_in_text"), good), TOOLS) is None
    )
    assert find_first_problem(build_ended(build_text_turn(0, "cut", finish="length"), good), TOOLS) is None


def test_find_first_problem_blank_answer_not_recovered_by_another() -> None:
    assert find_problem(build_ended(build_text_turn(0, ""), build_text_turn(1, " \n"))).location.turn == 0
    assert (
        find_first_problem(
            build_ended(build_text_turn(0, ""), build_calling_turn(1, build_result("state_get", {}))), TOOLS
        )
        is None
    )


def test_find_last_turn_is_that_of_the_last_record() -> None:
    assert find_last_turn(build_ended()) == 0
    assert (
        find_last_turn(
            build_ended(
                build_text_turn(0, "a"), build_text_turn(1, "b"), build_text_turn(2, "c"), build_text_turn(4, "d")
            )
        )
        == 4
    )


def test_find_first_problem_retry_of_same_turn_is_no_giving_up() -> None:
    error = ExchangeError("tools_unsupported", "no tools here", 400, infrastructure=False, tool_support=True)
    record = build_ended(build_failed_turn(1, error), build_calling_turn(1, ONLY_ERROR), build_text_turn(2, "No."))
    assert find_problem(record, expected_codes=["ARGUMENT_ERROR"]).location.turn == 2
