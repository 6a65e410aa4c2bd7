"""The cause of a failed trial is the last departure on which its verdict rests."""

import pytest

from tests.evals.causes.wire import BROKEN, steps, wrong
from tests.evals.records import calling, failing, result, saying
from toolbench.engine.events import ExchangeError, TurnRecord
from toolbench.evals.causes.classify import Ending, Occurrence, occurrences
from toolbench.evals.causes.decisive import cause_of
from toolbench.evals.causes.required_calls import Needs

FAILED = Ending("fail", "FINAL", "tool_error", call_expected=True)
PATCH = Needs(("state_patch",))
READ = result("state_get", {})
GET = '{"name": "state_get", "arguments": {}}'
PATCHED = result("state_patch", {})
TOO_LARGE = result("state_patch", {}, code="ARGUMENTS_TOO_LARGE", parse_status="too_large")


def cause(*records: TurnRecord, ending: Ending = FAILED) -> Occurrence | None:
    wire = steps(*records)
    return cause_of(wire, occurrences(wire), ending)


def code(*records: TurnRecord, needs: Needs = PATCH, end: str = "FINAL", failure_class: str = "") -> str:
    """Return the code of the cause of a failed trial that expects a call."""
    found = cause(*records, ending=Ending("fail", end, failure_class, call_expected=True, needs=needs))
    return found.code if found else ""


@pytest.mark.parametrize(
    ("record", "code", "path"),
    [
        (calling(0, BROKEN), "arguments_not_json", "$"),
        (calling(0, result("nobody", {}, code="TOOL_NOT_ALLOWED")), "tool_unknown", "$"),
        (calling(0, result("state_get", {}, code="ARGUMENT_ERROR")), "arguments_refused", "$"),
        (calling(0, result("state_get", {}, code="NOBODY_KNOWS_IT")), "tool_failed", "$"),
        (wrong(("$.ops", "missing")), "schema_missing", "$.ops"),
        (wrong(("$.ops[1].op", "enum")), "schema_enum", "$.ops[1].op"),
        (saying(0, f"<tool_call>{GET}</tool_call>", finding="call_in_text"), "call_in_tags", "$.content"),
        (saying(0, f"<think><tool_call>{GET}", finding="call_in_text"), "call_in_reasoning", "$.content"),
        (saying(0, "<think>[state_get()]</think>"), "call_in_reasoning", "$.choices[0].message.content"),
        (saying(0, "<tool_call>{}</tool_call>", finding="call_in_text"), "call_unreadable", "$.content"),
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


@pytest.mark.parametrize(
    "before", [(), (calling(0, READ),), (calling(0, TOO_LARGE),), (calling(0, READ), calling(1, TOO_LARGE))]
)
def test_cause_of_prose_instead_of_the_call_is_no_call(before: tuple[TurnRecord, ...]) -> None:
    needs = Needs(("state_patch",), provoked=("arguments_too_large",))
    assert code(*before, saying(len(before), "I would change it."), needs=needs) == "no_call"


def test_cause_of_provoked_error_repeated_is_that_error() -> None:
    needs = Needs(("state_patch",), provoked=("arguments_too_large",))
    again = calling(0, TOO_LARGE), calling(1, TOO_LARGE), saying(2, "I give up.")
    assert code(*again, needs=needs) == "arguments_too_large"


def test_cause_of_rejected_arguments_never_repaired_is_the_rejection() -> None:
    assert code(calling(0, BROKEN), saying(1, "Done.")) == "arguments_not_json"
    assert code(calling(0, BROKEN), calling(1, READ), saying(2, "Done.")) == "arguments_not_json"


def test_cause_of_other_tool_failed_before_further_work_is_no_call() -> None:
    other = result("search", {}, code="ARGUMENT_ERROR")
    assert code(calling(0, other), calling(1, READ), saying(2, "Done.")) == "no_call"


def test_cause_of_other_tool_failed_where_the_model_stopped_is_it() -> None:
    other = result("state_get", "{", code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")
    assert code(calling(0, other), saying(1, "I cannot read it.")) == "arguments_not_json"


def test_cause_of_two_faults_is_the_last_turns_first() -> None:
    unknown = result("state_patch_now", {}, code="TOOL_NOT_ALLOWED")
    assert code(calling(0, BROKEN), calling(1, unknown), saying(2, "Done.")) == "tool_unknown"
    assert code(calling(0, unknown), calling(1, BROKEN, finish="length"), saying(2, "Done.")) == "cut_by_length"


def test_cause_of_wrong_value_with_a_failed_read_is_task_not_done() -> None:
    missing = result("state_get", {}, code="WORKSPACE_NOT_FOUND")
    assert code(calling(0, missing, PATCHED), saying(1, "Done."), failure_class="wrong_workspace") == "task_not_done"


def test_cause_of_wrong_value_with_blank_final_depends_on_the_reply() -> None:
    records = calling(0, PATCHED), saying(1, " ")
    assert code(*records) == "task_not_done"
    assert code(*records, needs=Needs(("state_patch",), reply=True)) == "empty_final"
    assert code(*records, failure_class="empty_final") == "empty_final"


def test_cause_of_blank_answer_where_a_call_was_due_is_the_blank() -> None:
    assert code(saying(0, "")) == "empty_answer"
    assert code(calling(0, READ), saying(1, "")) == "empty_final"


def test_cause_of_class_empty_final_stands_at_its_answer() -> None:
    ending = Ending("fail", "FINAL", "empty_final", call_expected=True, needs=PATCH)
    found = cause(calling(0, PATCHED), saying(1, ""), ending=ending)
    assert found is not None
    assert (found.code, found.turn) == ("empty_final", 1)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ((calling(0, READ), calling(1, READ)), "turns_used_up"),
        ((calling(0, BROKEN), calling(1, READ)), "turns_used_up"),
        ((calling(0, READ), calling(1, BROKEN)), "arguments_not_json"),
    ],
)
def test_cause_of_turns_used_up_names_what_went_on_to_the_end(records: tuple[TurnRecord, ...], expected: str) -> None:
    assert code(*records, end="MAX_TURNS_EXCEEDED") == expected


def test_cause_of_turns_used_up_forgives_a_turn_before_the_last() -> None:
    records = calling(0, BROKEN), saying(1, "Let me think.")
    assert code(*records, end="MAX_TURNS_EXCEEDED") == "turns_used_up"


def test_cause_of_calls_never_together_is_calls_apart() -> None:
    needs = Needs(("state_patch",), together=2)
    assert code(calling(0, READ), calling(1, PATCHED), saying(2, "Done."), needs=needs) == "calls_apart"
    assert code(calling(0, READ, PATCHED), saying(1, "Done."), needs=needs) == "task_not_done"


def test_cause_of_needless_call_is_it_whatever_is_wrong_with_it() -> None:
    ending = Ending("fail", "FINAL", "arguments_not_json", call_expected=False, needs=Needs((), reply=True))
    found = cause(calling(0, BROKEN), saying(1, "42"), ending=ending)
    assert found is not None
    assert (found.code, found.turn, found.ordinal) == ("needless_call", 0, 1)  # at the answer that called


def test_cause_of_tools_refused_and_words_without_tools_is_the_refusal() -> None:
    refused = failing(0, ExchangeError("not_found", "…", tool_support=True))
    assert code(refused, saying(0, "I cannot.", tools_sent=False)) == "tools_refused"


def test_cause_of_call_in_text_after_a_good_call_is_the_text() -> None:
    text = saying(1, "state_patch()", finding="call_in_text")
    assert code(calling(0, READ), text) == "call_in_text"
    assert code(calling(0, READ), text, calling(2, READ), saying(3, "Done.")) == "no_call"


def test_cause_of_cut_words_behind_the_change_is_not_the_cut() -> None:
    assert code(calling(0, PATCHED), saying(1, "Done, I set i", finish="length")) == "task_not_done"
    assert code(calling(0, READ), saying(1, "I will now set", finish="length")) == "cut_by_length"


@pytest.mark.parametrize("text", ["", " ", "\u200b"])
def test_cause_of_blank_end_stands_at_its_answer(text: str) -> None:
    found = cause(
        calling(0, PATCHED),
        saying(1, text),
        ending=Ending("fail", "FINAL", "empty_final", call_expected=True, needs=PATCH),
    )
    assert found is not None
    assert (found.code, found.turn) == ("empty_final", 1)


def test_cause_named_by_its_class_alone_stands_at_the_first_step() -> None:
    ending = Ending("fail", "FINAL", "tools_dropped", call_expected=True)
    assert cause(calling(0, READ), ending=ending) == Occurrence("tools_dropped", "$", 0, 1, mended=False)
    assert cause(ending=ending) == Occurrence("tools_dropped", "$", 0, 0, mended=False)


def test_cause_of_nothing_sent_stands_before_the_first_step() -> None:
    assert cause(ending=Ending("infra", "PROVIDER_ERROR")) == Occurrence("never_sent", "$", 0, 0, mended=False)


def test_cause_of_the_ending_stands_at_the_last_step() -> None:
    assert cause(calling(0, READ), saying(1, "Done.")) == Occurrence("task_not_done", "$", 1, 3, mended=False)


def test_exchange_that_ended_a_trial_comes_before_a_needless_call() -> None:
    ending = Ending("fail", "PROVIDER_ERROR", "", call_expected=False)
    found = cause(calling(0, READ), failing(1, ExchangeError("unavailable", "…")), ending=ending)
    assert found is not None
    assert found.code == "server_failed"


def test_cancelled_exchange_does_not_hide_that_the_last_answer_called() -> None:
    assert code(calling(0, READ), failing(1, ExchangeError("cancelled", "…"))) == "task_not_done"


def test_calls_are_not_apart_where_the_task_needs_one_at_a_time() -> None:
    assert code(saying(0, "Done."), needs=Needs(())) == "task_not_done"
