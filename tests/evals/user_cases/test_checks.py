from typing import Any

import pytest

from tests.evals.records import build_calling_turn, build_ended, build_result, build_text_turn
from toolbench.evals.user_cases.checks import iter_check_problems, run_check

DONE = build_ended(
    build_calling_turn(0, build_result("look", {}), build_result("move", {})), build_text_turn(1, "Moved to 17.")
)


@pytest.mark.parametrize(
    ("row", "passes"),
    [
        ({"answer_contains": "MOVED"}, True),
        ({"answer_lacks": "17"}, False),
        ({"answer_is": " moved to 17. "}, True),
        ({"called": "look"}, True),
        ({"called": "look", "times": 2}, False),
        ({"not_called": "stop"}, True),
        ({"calls_at_most": 1}, False),
        ({"before": ["look", "move"]}, True),
        ({"before": ["move", "look"]}, False),
    ],
)
def test_run_check_evaluates_each_kind_of_row(row: dict[str, Any], passes: bool) -> None:
    assert run_check(row, DONE).ok is passes


@pytest.mark.parametrize(
    ("row", "passes"),
    [
        ({"called": "look"}, False),
        ({"called": "move", "times": 1}, True),
        ({"called": "look", "times": 0}, False),
        ({"not_called": "look"}, False),
        ({"calls_at_most": 1}, False),
        ({"before": ["look", "move"]}, False),
        ({"before": ["move", "look"]}, False),
        ({"before": ["move", "stop"]}, True),
    ],
)
def test_run_check_refused_call_counts_only_against_the_model(row: dict[str, Any], passes: bool) -> None:
    refused = build_result("look", "{", parse_status="invalid_json", code="ARGUMENTS_JSON_PARSE_ERROR")
    unknown = build_result("move", {}, code="TOOL_NOT_ALLOWED")
    record = build_ended(build_calling_turn(0, refused, unknown, build_result("move", {}, code="TOOL_FAILED")))
    assert run_check(row, record).ok is passes


@pytest.mark.parametrize(
    "row",
    [None, {}, {"eval": "1"}, {"answer_is": ""}, {"called": "gone"}, {"called": "look", "times": -1},
     {"calls_at_most": True}, {"before": ["look"]}, {"answer_is": "x", "times": 1}],
)  # fmt: skip
def test_iter_check_problems_refuses_any_other_row(row: Any) -> None:
    assert list(iter_check_problems(row, ("look", "move")))
