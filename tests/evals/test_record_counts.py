"""Tests of the numerators and denominators of rates for one trial."""

from dataclasses import replace

import pytest

from tests.evals.records import build_calling_turn, build_ended, build_failed_turn, build_result, build_text_turn
from toolbench.engine.events import EndReason, ExchangeError, TurnRecord
from toolbench.engine.transforms import list_names
from toolbench.engine.transforms.responses import TEXT_CALL_TRANSFORMS
from toolbench.engine.types import ParseError, SchemaError, TransformChange
from toolbench.evals import record_counts


def add_change(record: TurnRecord, name: str) -> TurnRecord:
    assert record.answer is not None
    change = TransformChange("response", name, "$.content", "", "")
    return replace(record, answer=replace(record.answer, changes=(change,)))


def test_count_trial_counts_calls_and_turns_by_result() -> None:
    broken = build_result("state_patch", "{", code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")
    wrong = build_result(
        "state_patch", {"ops": {}}, code="ARGUMENT_ERROR", schema_errors=[SchemaError("$.ops", "type", "")]
    )
    counts = record_counts.count_trial(
        build_ended(
            build_calling_turn(0, build_result("state_get", {}), ignored=2),
            build_calling_turn(1, broken),
            build_calling_turn(2, wrong),
            build_calling_turn(3, build_result("nobody", {}, code="TOOL_NOT_ALLOWED")),
            build_calling_turn(
                4, build_result("state_patch", "x" * 400, code="ARGUMENTS_TOO_LARGE", parse_status="too_large")
            ),
            build_text_turn(5, "```json", finding="parse_error"),
            build_text_turn(6, "Done."),
        )
    )
    assert counts == {
        "calls": 4,
        "valid_calls": 1,
        "structured_answers": 5,
        "calling_answers": 6,
        "parse_error_turns": 2,
        "calling_turns": 6,
        "ignored_calls": 2,
        "repaired_calls": 0,
        "parse_error_ends": 0,
        "fallback_turns": 0,
    }


def test_count_trial_repaired_call_is_a_parse_error_and_not_valid() -> None:
    record = build_calling_turn(
        0, build_result("state_get", {}), build_result("state_get", {}), build_result("state_get", {})
    )
    assert record.answer is not None
    repaired = ParseError("tool_use", "bad", "{'", call=1, repairs=("single_quotes",))
    truncated = ParseError("tool_use", "bad", "{'", call=2, repairs=("cut_value",), truncated=True)
    answer = replace(record.answer, parse_errors=(repaired, truncated), mode="json_fallback")
    counts = record_counts.count_trial(build_ended(replace(record, answer=answer)))
    names = ("calls", "valid_calls", "repaired_calls", "parse_error_turns", "fallback_turns")
    assert [counts[name] for name in names] == [3, 2, 1, 1, 1]


def test_count_trial_call_too_large_after_a_repair_is_not_counted() -> None:
    too_large = build_result("state_get", {}, code="ARGUMENTS_TOO_LARGE", parse_status="too_large")
    record = build_calling_turn(0, too_large)
    assert record.answer is not None
    repaired = ParseError("tool_use", "bad", "{a:", call=0, repairs=("unquoted_keys",))
    answer = replace(record.answer, parse_errors=(repaired,))
    counts = record_counts.count_trial(build_ended(replace(record, answer=answer)))
    assert [counts[name] for name in ("calls", "valid_calls", "repaired_calls")] == [0, 0, 0]


@pytest.mark.parametrize(("code", "ends"), [("model_format", 1), ("connection_reset", 0)])
def test_count_trial_text_that_server_cannot_read_is_parse_error_end(code: str, ends: int) -> None:
    error = ExchangeError(code, "…", infrastructure=False)
    assert (
        record_counts.count_trial(build_ended(build_failed_turn(0, error), end=EndReason.PROVIDER_ERROR, error=error))[
            "parse_error_ends"
        ]
        == ends
    )


@pytest.mark.parametrize("name", sorted(TEXT_CALL_TRANSFORMS))
def test_count_trial_calls_from_tags_or_text_are_not_structured(name: str) -> None:
    assert name in list_names("response")
    tagged = add_change(build_calling_turn(0, build_result("state_get", {})), name)
    record = build_calling_turn(1, build_result("state_get", {}))
    assert record.answer is not None
    fallback = replace(record, answer=replace(record.answer, method_used="json_fallback"))
    counts = record_counts.count_trial(
        build_ended(tagged, fallback, build_text_turn(2, "state_get()", finding="call_in_text"))
    )
    assert (counts["structured_answers"], counts["calling_answers"]) == (0, 3)


def test_is_without_tools_only_if_no_request_offered_them() -> None:
    assert record_counts.is_without_tools(build_ended(build_text_turn(0, "hi", tools_sent=False)))
    assert not record_counts.is_without_tools(
        build_ended(build_text_turn(0, "hi"), build_text_turn(1, "hi", tools_sent=False))
    )
    assert not record_counts.is_without_tools(build_ended())


def test_has_answer_is_false_for_a_dead_endpoint() -> None:
    error = ExchangeError("connection_refused", "refused")
    assert not record_counts.has_answer(
        build_ended(build_failed_turn(0, error), end=EndReason.PROVIDER_ERROR, error=error)
    )
    assert not record_counts.has_answer(build_ended())
    assert record_counts.has_answer(build_ended(build_text_turn(0, "")))
