"""A cause is found in the steps alone, the same each time, and named by what nothing made good."""

import pytest

from tests.evals.records import calling, failing, result, saying
from toolbench.engine.events import ExchangeError, TurnRecord
from toolbench.engine.messages import SchemaError
from toolbench.evals.causes.classifying import Ending, Occurrence, cause_of, cause_signature, grouped, occurrences
from toolbench.evals.causes.wire_steps import Exchanged, Ran, WireStep

BROKEN = result("state_patch", "{", code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")
FAILED = Ending("fail", "FINAL", "tool_error", call_expected=True)


def steps(*records: TurnRecord) -> tuple[WireStep, ...]:
    """The records as steps, numbered from 1."""
    found: list[WireStep] = []
    for record in records:
        error = record.failure.code if record.failure else ""
        tools = record.request.tools_sent
        found.append(Exchanged(len(found) + 1, record.turn, tools, record.answer, error))
        for one in record.results:
            found.append(Ran(len(found) + 1, record.turn, one))
    return tuple(found)


def wrong(*errors: tuple[str, str]) -> TurnRecord:
    broken = [SchemaError(path, kind, "") for path, kind in errors]
    return calling(0, result("state_patch", {}, code="ARGUMENT_ERROR", schema_errors=broken))


def cause(*records: TurnRecord, ending: Ending = FAILED) -> Occurrence | None:
    wire = steps(*records)
    return cause_of(wire, occurrences(wire), ending)


@pytest.mark.parametrize(
    ("record", "code", "path"),
    [
        (calling(0, BROKEN), "arguments_not_json", "$"),
        (calling(0, result("nobody", {}, code="TOOL_NOT_ALLOWED")), "tool_unknown", "$"),
        (calling(0, result("state_get", {}, code="ARGUMENT_ERROR")), "arguments_refused", "$"),
        (calling(0, result("state_get", {}, code="NOBODY_KNOWS_IT")), "tool_failed", "$"),
        (wrong(("$.ops", "missing")), "schema_missing", "$.ops"),
        (wrong(("$.ops[1].op", "enum")), "schema_enum", "$.ops[1].op"),
        (saying(0, "<tool_call>{}</tool_call>", finding="call_in_text"), "call_in_tags", "$.content"),
        (saying(0, "state_get()", finding="call_in_text"), "call_in_text", "$.content"),
        (saying(0, "```json", finding="parse_error"), "call_unreadable", "$.content"),
        (saying(0, " "), "empty_answer", "$.choices[0].message.content"),
        (saying(0, "I would call", finish="length"), "cut_by_length", "$.choices[0].finish_reason"),
        (saying(0, "Sure, done."), "no_call", "$"),
        (saying(0, "Done.", tools_sent=False), "no_call", "$"),
        (calling(0, result("state_get", {})), "task_not_done", "$"),
    ],
)
def test_each_cause_is_found_where_it_stands(record: TurnRecord, code: str, path: str) -> None:
    found = cause(record)
    assert found is not None
    assert (found.code, found.path) == (code, path)


def test_what_a_later_call_makes_good_is_seen_and_not_blamed() -> None:
    wire = steps(calling(0, BROKEN), calling(1, result("state_patch", {})), saying(2, ""))
    found = occurrences(wire)
    assert [(one.code, one.mended) for one in found] == [("arguments_not_json", True), ("empty_final", False)]
    blamed = cause_of(wire, found, FAILED)
    assert blamed is not None
    assert (blamed.code, blamed.turn, blamed.ordinal) == ("empty_final", 2, 5)


def test_the_last_exchange_is_blamed_where_the_provider_ended_the_trial() -> None:
    down = failing(1, ExchangeError("unavailable", "…"))
    found = cause(calling(0, BROKEN), down, ending=Ending("infra", "PROVIDER_ERROR", "upstream_failed", True))
    assert found is not None
    assert found.code == "server_failed"


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (Ending("fail", "DEADLINE_EXCEEDED", "deadline_exceeded", call_expected=True), "deadline_passed"),
        (Ending("fail", "FINAL", "tools_dropped", call_expected=True), "tools_dropped"),
        (Ending("infra", "PROVIDER_ERROR", "our_error", call_expected=True), "our_error"),
        (Ending("fail", "FINAL", "needless_call", call_expected=False), "needless_call"),
    ],
)
def test_an_ending_that_says_it_all_comes_first(ending: Ending, code: str) -> None:
    found = cause(calling(0, result("state_get", {})), ending=ending)
    assert found is not None
    assert found.code == code


def test_the_turns_are_used_up_only_where_there_was_more_than_one() -> None:
    ending = Ending("fail", "MAX_TURNS_EXCEEDED", "max_turns_exceeded", call_expected=True)
    one, two = calling(0, result("state_get", {})), calling(1, result("state_get", {}))
    found = cause(one, ending=ending), cause(one, two, ending=ending)
    assert [seen.code for seen in found if seen] == ["task_not_done", "turns_used_up"]


def test_nothing_sent_is_a_cause_of_its_own_and_a_pass_has_none() -> None:
    found = cause(ending=Ending("infra", "PROVIDER_ERROR", ""))
    assert found is not None
    assert found.code == "never_sent"
    assert cause(calling(0, BROKEN), ending=Ending("pass", "FINAL")) is None


def test_violations_are_grouped_whatever_their_place_in_a_list() -> None:
    found = grouped(occurrences(steps(wrong(("$.ops[0].path", "type"), ("$.ops[3].path", "type"), ("$.id", "type")))))
    assert [(one.code, one.path, one.count) for one in found] == [
        ("schema_type", "$.ops[0].path", 2),
        ("schema_type", "$.id", 1),
    ]
    assert cause_signature(found[0], "happy_path") == "schema_type · happy_path · $.ops[].path · turn 1"


def test_thousands_of_failed_calls_in_one_answer_are_looked_at_once() -> None:
    wire = steps(calling(0, *[BROKEN] * 5_000), calling(1, result("state_patch", {})))
    (one,) = grouped(occurrences(wire))
    assert (one.code, one.count, one.mended) == ("arguments_not_json", 5_000, True)
