"""Tests of the counts of hand-made steps."""

from tests.evals.causes.hand_made_steps import build_steps
from tests.evals.records import build_calling_turn, build_result, build_text_turn
from toolbench.engine.types import SchemaError
from toolbench.evals.causes.classify import find_occurrences
from toolbench.evals.causes.step_counts import count_steps


def test_count_steps_counts_calls_turns_and_answers_by_result() -> None:
    errors = [SchemaError("$.a", "missing", ""), SchemaError("$.b", "missing", ""), SchemaError("$.c", "extra", "")]
    wrong = build_result("state_patch", {}, code="ARGUMENT_ERROR", schema_errors=errors)
    steps = build_steps(
        build_calling_turn(0, wrong, build_result("state_get", {})),
        build_calling_turn(1, build_result("state_patch", {}), ignored=1),
        build_text_turn(2, ""),
        build_text_turn(3, "Done."),
    )
    assert count_steps(steps, find_occurrences(steps)) == {
        "failed_calls": 1,
        "missing_calls": 1,
        "type_calls": 0,
        "enum_calls": 0,
        "range_calls": 0,
        "extra_calls": 1,
        "answered_turns": 4,
        "good_turns": 2,
        "final_answers": 2,
        "empty_finals": 1,
    }


def test_count_steps_blank_first_answer_is_no_empty_final() -> None:
    steps = build_steps(build_text_turn(0, ""))
    assert count_steps(steps, find_occurrences(steps))["empty_finals"] == 0
