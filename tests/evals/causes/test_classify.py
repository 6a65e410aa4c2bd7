"""Tests of the causes that steps show."""

from dataclasses import replace

import pytest

from tests.evals.causes.hand_made_steps import UNREADABLE_CALL, build_schema_error_turn, build_steps
from tests.evals.records import build_calling_turn, build_failed_turn, build_result, build_text_turn
from toolbench.engine.events import ExchangeError, TurnRecord
from toolbench.engine.types import SchemaError
from toolbench.evals.causes.classify import CauseOccurrence, build_cause_signature, find_occurrences, group_occurrences


def test_group_occurrences_ignores_list_index_of_a_violation() -> None:
    found = group_occurrences(
        find_occurrences(
            build_steps(build_schema_error_turn(("$.ops[0].path", "type"), ("$.ops[3].path", "type"), ("$.id", "type")))
        )
    )
    assert [(item.code, item.path, item.count) for item in found] == [
        ("schema_type", "$.ops[0].path", 2),
        ("schema_type", "$.id", 1),
    ]
    assert build_cause_signature(found[0], "happy_path") == "schema_type · happy_path · $.ops[].path · turn 1"


def test_group_occurrences_is_healed_only_if_all_are() -> None:
    healed = CauseOccurrence("call_type", "$.calls", 0, 0, mended=True, healed=True)
    (all_healed,) = group_occurrences([healed, healed])
    (group,) = group_occurrences([healed, replace(healed, healed=False)])
    assert (all_healed.healed, group.healed) == (True, False)


def test_find_occurrences_unknown_tool_recovered_by_later_success() -> None:
    unknown, good = build_result("nobody", {}, code="TOOL_NOT_ALLOWED"), build_result("state_get", {})
    assert list_codes(build_calling_turn(0, good), build_calling_turn(1, unknown)) == [("tool_unknown", False)]
    assert list_codes(build_calling_turn(0, good), build_calling_turn(1, unknown), build_calling_turn(2, good)) == [
        ("tool_unknown", True)
    ]


def test_find_occurrences_5000_failed_calls_form_one_group() -> None:
    steps = build_steps(
        build_calling_turn(0, *[UNREADABLE_CALL] * 5_000), build_calling_turn(1, build_result("state_patch", {}))
    )
    (group,) = group_occurrences(find_occurrences(steps))
    assert (group.code, group.count, group.mended) == ("arguments_not_json", 5_000, True)


def test_find_occurrences_truncated_call_not_recovered_by_earlier_one() -> None:
    good, cut = build_result("state_get", {}), UNREADABLE_CALL
    found = find_occurrences(build_steps(build_calling_turn(0, good, cut, finish="length")))
    assert [(item.code, item.mended) for item in found] == [("cut_by_length", False), ("arguments_not_json", False)]


def test_find_occurrences_complete_call_at_length_limit_is_no_problem() -> None:
    assert find_occurrences(build_steps(build_calling_turn(0, build_result("state_get", {}), finish="length"))) == ()


def test_find_occurrences_invalid_call_at_length_limit_is_schema_error() -> None:
    broken = build_result("state_patch", {}, code="ARGUMENT_ERROR", schema_errors=[SchemaError("$.ops", "missing", "")])
    assert [
        occurrence.code for occurrence in find_occurrences(build_steps(build_calling_turn(0, broken, finish="length")))
    ] == ["schema_missing"]


def test_find_occurrences_refused_tools_not_recovered_by_text() -> None:
    refused = build_failed_turn(0, ExchangeError("not_found", "…", tool_support=True))
    found = find_occurrences(build_steps(refused, build_text_turn(0, "I cannot.", tools_sent=False)))
    assert [(item.code, item.mended) for item in found] == [("tools_refused", False)]


UNAVAILABLE = ExchangeError("unavailable", "…")
TAGGED = '<tool_call>{"name": "state_get", "arguments": {}}</tool_call>'


def list_codes(*records: TurnRecord) -> list[tuple[str, bool]]:
    return [(occurrence.code, occurrence.mended) for occurrence in find_occurrences(build_steps(*records))]


def test_find_occurrences_failed_exchange_recovered_by_later_answer() -> None:
    assert list_codes(build_failed_turn(0, UNAVAILABLE)) == [("server_failed", False)]
    assert list_codes(build_failed_turn(0, UNAVAILABLE), build_text_turn(1, "Done.")) == [("server_failed", True)]
    assert list_codes(build_text_turn(0, "Wait."), build_failed_turn(1, UNAVAILABLE)) == [("server_failed", False)]
    assert list_codes(build_text_turn(0, "Wait."), build_failed_turn(1, UNAVAILABLE), build_text_turn(2, "Done.")) == [
        ("server_failed", True)
    ]


def test_find_occurrences_blank_answer_recovered_by_call_or_text() -> None:
    assert list_codes(build_text_turn(0, ""), build_calling_turn(1, build_result("state_get", {}))) == [
        ("empty_answer", True)
    ]
    assert list_codes(build_text_turn(0, ""), build_text_turn(1, "Done.")) == [("empty_answer", True)]
    assert list_codes(build_text_turn(0, ""), build_text_turn(1, " ")) == [
        ("empty_answer", False),
        ("empty_answer", False),
    ]


def test_find_occurrences_blank_answer_after_call_is_empty_final() -> None:
    good = build_result("state_get", {})
    assert list_codes(build_calling_turn(0, good), build_text_turn(1, ""), build_calling_turn(2, good)) == [
        ("empty_final", True)
    ]


def test_find_occurrences_call_in_text_recovered_by_later_call() -> None:
    written = build_text_turn(0, "state_get()", finding="call_in_text")
    assert list_codes(written, build_calling_turn(1, build_result("state_get", {}))) == [("call_in_text", True)]
    assert list_codes(written, build_calling_turn(1, UNREADABLE_CALL))[0] == ("call_in_text", False)


def test_find_occurrences_call_in_tags_has_its_own_code() -> None:
    assert list_codes(build_text_turn(0, TAGGED, finding="call_in_text")) == [("call_in_tags", False)]


def test_find_occurrences_call_in_text_is_not_healed() -> None:
    (group,) = find_occurrences(build_steps(build_text_turn(0, "state_get()", finding="call_in_text")))
    assert (group.code, group.path, group.healed) == ("call_in_text", "$.content", False)
    (failed,) = find_occurrences(build_steps(build_calling_turn(0, UNREADABLE_CALL)))
    assert (failed.healed, failed.count) == (False, 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"a": 1}, "arguments_as_object"),
        ([1], "arguments_not_json"),
        ([], "arguments_not_json"),
        (0, "arguments_not_json"),
        (7, "arguments_not_json"),
        (" ", "arguments_blank"),
        (None, "arguments_blank"),
    ],
)
def test_find_occurrences_unread_arguments_classified_by_type(arguments: object, code: str) -> None:
    unread = replace(UNREADABLE_CALL, call=replace(UNREADABLE_CALL.call, arguments=arguments))
    assert [occurrence.code for occurrence in find_occurrences(build_steps(build_calling_turn(0, unread)))] == [code]


@pytest.mark.parametrize(("text", "codes"), [(" ", ["call_in_reasoning", "empty_answer"]), ("Done.", [])])
def test_find_occurrences_call_in_reasoning_needs_a_blank_text(text: str, codes: list[str]) -> None:
    record = build_text_turn(0, text)
    assert record.answer is not None
    thought = replace(record, answer=replace(record.answer, message={"reasoning_content": TAGGED}))
    assert [occurrence.code for occurrence in find_occurrences(build_steps(thought))] == codes


def test_build_cause_signature_keeps_120_characters_of_path() -> None:
    cause = CauseOccurrence("schema_type", "$." + "x" * 200, 0, 1, mended=False)
    assert build_cause_signature(cause, "happy_path") == f"schema_type · happy_path · $.{'x' * 118} · turn 1"
