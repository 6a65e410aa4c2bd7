"""Counts from hand-made steps, each with the denominator of its name."""

from tests.evals.causes.wire import steps
from tests.evals.records import calling, result, saying
from toolbench.engine.messages import SchemaError
from toolbench.evals.causes.classify import occurrences
from toolbench.evals.causes.step_counts import step_counts


def test_calls_turns_and_answers_are_counted_by_what_became_of_them() -> None:
    errors = [SchemaError("$.a", "missing", ""), SchemaError("$.b", "missing", ""), SchemaError("$.c", "extra", "")]
    wrong = result("state_patch", {}, code="ARGUMENT_ERROR", schema_errors=errors)
    wire = steps(
        calling(0, wrong, result("state_get", {})),
        calling(1, result("state_patch", {}), ignored=1),
        saying(2, ""),
        saying(3, "Done."),
    )
    assert step_counts(wire, occurrences(wire)) == {
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


def test_a_blank_first_answer_is_no_empty_final() -> None:
    wire = steps(saying(0, ""))
    assert step_counts(wire, occurrences(wire))["empty_finals"] == 0
