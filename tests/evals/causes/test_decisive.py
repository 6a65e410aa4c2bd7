"""Tests of the selection of the cause of a failed trial."""

import pytest

from tests.evals.causes.hand_made_steps import UNREADABLE_CALL, build_schema_error_turn, build_steps
from tests.evals.records import build_calling_turn, build_failed_turn, build_result, build_text_turn
from toolbench.engine.events import ExchangeError, TurnRecord
from toolbench.evals.causes.classify import CauseOccurrence, TrialEnd, find_occurrences
from toolbench.evals.causes.decisive import find_cause
from toolbench.evals.causes.required_calls import TaskNeeds

FAILED = TrialEnd("fail", "FINAL", "tool_error", call_expected=True)
PATCH = TaskNeeds(("state_patch",))
READ = build_result("state_get", {})
GET = '{"name": "state_get", "arguments": {}}'
PATCHED = build_result("state_patch", {})
TOO_LARGE = build_result("state_patch", {}, code="ARGUMENTS_TOO_LARGE", parse_status="too_large")


def find_trial_cause(*records: TurnRecord, ending: TrialEnd = FAILED) -> CauseOccurrence | None:
    steps = build_steps(*records)
    return find_cause(steps, find_occurrences(steps), ending)


def find_code(*records: TurnRecord, needs: TaskNeeds = PATCH, end: str = "FINAL", failure_class: str = "") -> str:
    """Return the cause code of a failed trial that expects a call; "" without a cause."""
    found = find_trial_cause(*records, ending=TrialEnd("fail", end, failure_class, call_expected=True, needs=needs))
    return found.code if found else ""


@pytest.mark.parametrize(
    ("record", "code", "path"),
    [
        (build_calling_turn(0, UNREADABLE_CALL), "arguments_not_json", "$"),
        (build_calling_turn(0, build_result("nobody", {}, code="TOOL_NOT_ALLOWED")), "tool_unknown", "$"),
        (build_calling_turn(0, build_result("state_get", {}, code="ARGUMENT_ERROR")), "arguments_refused", "$"),
        (build_calling_turn(0, build_result("state_get", {}, code="NOBODY_KNOWS_IT")), "tool_failed", "$"),
        (build_schema_error_turn(("$.ops", "missing")), "schema_missing", "$.ops"),
        (build_schema_error_turn(("$.ops[1].op", "enum")), "schema_enum", "$.ops[1].op"),
        (build_text_turn(0, f"<tool_call>{GET}</tool_call>", finding="call_in_text"), "call_in_tags", "$.content"),
        (build_text_turn(0, f"<think><tool_call>{GET}", finding="call_in_text"), "call_in_reasoning", "$.content"),
        (build_text_turn(0, "<think>[state_get()]</think>"), "call_in_reasoning", "$.choices[0].message.content"),
        (build_text_turn(0, "<tool_call>{}</tool_call>", finding="call_in_text"), "call_unreadable", "$.content"),
        (build_text_turn(0, "state_get()", finding="call_in_text"), "call_in_text", "$.content"),
        (build_text_turn(0, "```json", finding="parse_error"), "call_unreadable", "$.content"),
        (build_text_turn(0, " "), "empty_answer", "$.choices[0].message.content"),
        (build_text_turn(0, "I would call", finish="length"), "cut_by_length", "$.choices[0].finish_reason"),
        (build_text_turn(0, "Sure, done."), "no_call", "$"),
        (build_text_turn(0, "Done.", tools_sent=False), "no_call", "$"),
        (build_calling_turn(0, build_result("state_get", {})), "task_not_done", "$"),
    ],
)
def test_find_cause_of_one_turn_has_code_and_path(record: TurnRecord, code: str, path: str) -> None:
    found = find_trial_cause(record)
    assert found is not None
    assert (found.code, found.path) == (code, path)


def test_find_cause_skips_a_recovered_problem() -> None:
    steps = build_steps(
        build_calling_turn(0, UNREADABLE_CALL),
        build_calling_turn(1, build_result("state_patch", {})),
        build_text_turn(2, ""),
    )
    found = find_occurrences(steps)
    assert [(item.code, item.mended) for item in found] == [("arguments_not_json", True), ("empty_final", False)]
    decisive = find_cause(steps, found, FAILED)
    assert decisive is not None
    assert (decisive.code, decisive.turn, decisive.ordinal) == ("empty_final", 2, 5)


def test_find_cause_of_provider_error_is_last_failed_exchange() -> None:
    down = build_failed_turn(1, ExchangeError("unavailable", "…"))
    found = find_trial_cause(
        build_calling_turn(0, UNREADABLE_CALL),
        down,
        ending=TrialEnd("infra", "PROVIDER_ERROR", "upstream_failed", True),
    )
    assert found is not None
    assert found.code == "server_failed"


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (TrialEnd("fail", "DEADLINE_EXCEEDED", "deadline_exceeded", call_expected=True), "deadline_passed"),
        (TrialEnd("fail", "FINAL", "tools_dropped", call_expected=True), "tools_dropped"),
        (TrialEnd("infra", "PROVIDER_ERROR", "our_error", call_expected=True), "our_error"),
        (TrialEnd("fail", "FINAL", "needless_call", call_expected=False), "needless_call"),
    ],
)
def test_find_cause_follows_conclusive_ending_before_steps(ending: TrialEnd, code: str) -> None:
    found = find_trial_cause(build_calling_turn(0, build_result("state_get", {})), ending=ending)
    assert found is not None
    assert found.code == code


def test_find_cause_turns_used_up_needs_two_turns() -> None:
    ending = TrialEnd("fail", "MAX_TURNS_EXCEEDED", "max_turns_exceeded", call_expected=True)
    one, two = (
        build_calling_turn(0, build_result("state_get", {})),
        build_calling_turn(1, build_result("state_get", {})),
    )
    found = find_trial_cause(one, ending=ending), find_trial_cause(one, two, ending=ending)
    assert [seen.code for seen in found if seen] == ["task_not_done", "turns_used_up"]


def test_find_cause_without_steps_is_never_sent_and_of_a_pass_is_none() -> None:
    found = find_trial_cause(ending=TrialEnd("infra", "PROVIDER_ERROR", ""))
    assert found is not None
    assert found.code == "never_sent"
    assert find_trial_cause(build_calling_turn(0, UNREADABLE_CALL), ending=TrialEnd("pass", "FINAL")) is None


@pytest.mark.parametrize(
    "before",
    [
        (),
        (build_calling_turn(0, READ),),
        (build_calling_turn(0, TOO_LARGE),),
        (build_calling_turn(0, READ), build_calling_turn(1, TOO_LARGE)),
    ],
)
def test_find_cause_of_prose_instead_of_call_is_no_call(before: tuple[TurnRecord, ...]) -> None:
    needs = TaskNeeds(("state_patch",), provoked_causes=("arguments_too_large",))
    assert find_code(*before, build_text_turn(len(before), "I would change it."), needs=needs) == "no_call"


def test_find_cause_of_repeated_provoked_error_is_that_error() -> None:
    needs = TaskNeeds(("state_patch",), provoked_causes=("arguments_too_large",))
    again = build_calling_turn(0, TOO_LARGE), build_calling_turn(1, TOO_LARGE), build_text_turn(2, "I give up.")
    assert find_code(*again, needs=needs) == "arguments_too_large"


def test_find_cause_of_uncorrected_arguments_is_arguments_not_json() -> None:
    assert find_code(build_calling_turn(0, UNREADABLE_CALL), build_text_turn(1, "Done.")) == "arguments_not_json"
    assert (
        find_code(build_calling_turn(0, UNREADABLE_CALL), build_calling_turn(1, READ), build_text_turn(2, "Done."))
        == "arguments_not_json"
    )


def test_find_cause_of_other_tool_failed_before_last_call_is_no_call() -> None:
    other = build_result("search", {}, code="ARGUMENT_ERROR")
    assert (
        find_code(build_calling_turn(0, other), build_calling_turn(1, READ), build_text_turn(2, "Done.")) == "no_call"
    )


def test_find_cause_of_other_tool_failed_in_last_call_is_its_failure() -> None:
    other = build_result("state_get", "{", code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")
    assert find_code(build_calling_turn(0, other), build_text_turn(1, "I cannot read it.")) == "arguments_not_json"


def test_find_cause_of_two_problems_is_first_one_of_last_turn() -> None:
    unknown = build_result("state_patch_now", {}, code="TOOL_NOT_ALLOWED")
    assert (
        find_code(build_calling_turn(0, UNREADABLE_CALL), build_calling_turn(1, unknown), build_text_turn(2, "Done."))
        == "tool_unknown"
    )
    assert (
        find_code(
            build_calling_turn(0, unknown),
            build_calling_turn(1, UNREADABLE_CALL, finish="length"),
            build_text_turn(2, "Done."),
        )
        == "cut_by_length"
    )


def test_find_cause_of_wrong_value_with_failed_read_is_task_not_done() -> None:
    missing = build_result("state_get", {}, code="WORKSPACE_NOT_FOUND")
    assert (
        find_code(build_calling_turn(0, missing, PATCHED), build_text_turn(1, "Done."), failure_class="wrong_workspace")
        == "task_not_done"
    )


def test_find_cause_of_wrong_value_and_blank_final_depends_on_reply() -> None:
    records = build_calling_turn(0, PATCHED), build_text_turn(1, " ")
    assert find_code(*records) == "task_not_done"
    assert find_code(*records, needs=TaskNeeds(("state_patch",), needs_reply=True)) == "empty_final"
    assert find_code(*records, failure_class="empty_final") == "empty_final"


def test_find_cause_of_blank_answer_instead_of_call_is_the_blank() -> None:
    assert find_code(build_text_turn(0, "")) == "empty_answer"
    assert find_code(build_calling_turn(0, READ), build_text_turn(1, "")) == "empty_final"


def test_find_cause_of_class_empty_final_is_at_its_answer() -> None:
    ending = TrialEnd("fail", "FINAL", "empty_final", call_expected=True, needs=PATCH)
    found = find_trial_cause(build_calling_turn(0, PATCHED), build_text_turn(1, ""), ending=ending)
    assert found is not None
    assert (found.code, found.turn) == ("empty_final", 1)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ((build_calling_turn(0, READ), build_calling_turn(1, READ)), "turns_used_up"),
        ((build_calling_turn(0, UNREADABLE_CALL), build_calling_turn(1, READ)), "turns_used_up"),
        ((build_calling_turn(0, READ), build_calling_turn(1, UNREADABLE_CALL)), "arguments_not_json"),
    ],
)
def test_find_cause_at_max_turns_is_problem_of_last_turn_if_any(records: tuple[TurnRecord, ...], expected: str) -> None:
    assert find_code(*records, end="MAX_TURNS_EXCEEDED") == expected


def test_find_cause_at_max_turns_ignores_problem_before_last_turn() -> None:
    records = build_calling_turn(0, UNREADABLE_CALL), build_text_turn(1, "Let me think.")
    assert find_code(*records, end="MAX_TURNS_EXCEEDED") == "turns_used_up"


def test_find_cause_of_calls_never_in_one_message_is_calls_apart() -> None:
    needs = TaskNeeds(("state_patch",), parallel_calls=2)
    assert (
        find_code(build_calling_turn(0, READ), build_calling_turn(1, PATCHED), build_text_turn(2, "Done."), needs=needs)
        == "calls_apart"
    )
    assert find_code(build_calling_turn(0, READ, PATCHED), build_text_turn(1, "Done."), needs=needs) == "task_not_done"


def test_find_cause_of_needless_unreadable_call_is_needless_call() -> None:
    ending = TrialEnd("fail", "FINAL", "arguments_not_json", call_expected=False, needs=TaskNeeds((), needs_reply=True))
    found = find_trial_cause(build_calling_turn(0, UNREADABLE_CALL), build_text_turn(1, "42"), ending=ending)
    assert found is not None
    assert (found.code, found.turn, found.ordinal) == ("needless_call", 0, 1)  # at the answer that called


def test_find_cause_of_refused_tools_then_text_is_tools_refused() -> None:
    refused = build_failed_turn(0, ExchangeError("not_found", "…", tool_support=True))
    assert find_code(refused, build_text_turn(0, "I cannot.", tools_sent=False)) == "tools_refused"


def test_find_cause_of_call_in_text_after_good_call_is_call_in_text() -> None:
    text = build_text_turn(1, "state_patch()", finding="call_in_text")
    assert find_code(build_calling_turn(0, READ), text) == "call_in_text"
    assert (
        find_code(build_calling_turn(0, READ), text, build_calling_turn(2, READ), build_text_turn(3, "Done."))
        == "no_call"
    )


def test_find_cause_of_truncated_text_after_change_is_task_not_done() -> None:
    assert (
        find_code(build_calling_turn(0, PATCHED), build_text_turn(1, "Done, I set i", finish="length"))
        == "task_not_done"
    )
    assert (
        find_code(build_calling_turn(0, READ), build_text_turn(1, "I will now set", finish="length")) == "cut_by_length"
    )


@pytest.mark.parametrize("text", ["", " ", "\u200b"])
def test_find_cause_of_invisible_final_text_is_at_its_answer(text: str) -> None:
    found = find_trial_cause(
        build_calling_turn(0, PATCHED),
        build_text_turn(1, text),
        ending=TrialEnd("fail", "FINAL", "empty_final", call_expected=True, needs=PATCH),
    )
    assert found is not None
    assert (found.code, found.turn) == ("empty_final", 1)


def test_find_cause_named_by_class_alone_is_at_first_step() -> None:
    ending = TrialEnd("fail", "FINAL", "tools_dropped", call_expected=True)
    assert find_trial_cause(build_calling_turn(0, READ), ending=ending) == CauseOccurrence(
        "tools_dropped", "$", 0, 1, mended=False
    )
    assert find_trial_cause(ending=ending) == CauseOccurrence("tools_dropped", "$", 0, 0, mended=False)


def test_find_cause_of_nothing_sent_is_before_first_step() -> None:
    assert find_trial_cause(ending=TrialEnd("infra", "PROVIDER_ERROR")) == CauseOccurrence(
        "never_sent", "$", 0, 0, mended=False
    )


def test_find_cause_of_the_ending_is_at_last_step() -> None:
    assert find_trial_cause(build_calling_turn(0, READ), build_text_turn(1, "Done.")) == CauseOccurrence(
        "task_not_done", "$", 1, 3, mended=False
    )


def test_find_cause_prefers_final_failed_exchange_to_needless_call() -> None:
    ending = TrialEnd("fail", "PROVIDER_ERROR", "", call_expected=False)
    found = find_trial_cause(
        build_calling_turn(0, READ), build_failed_turn(1, ExchangeError("unavailable", "…")), ending=ending
    )
    assert found is not None
    assert found.code == "server_failed"


def test_find_cause_ignores_cancelled_exchange_after_last_answer() -> None:
    assert (
        find_code(build_calling_turn(0, READ), build_failed_turn(1, ExchangeError("cancelled", "…"))) == "task_not_done"
    )


def test_find_cause_without_parallel_need_is_not_calls_apart() -> None:
    assert find_code(build_text_turn(0, "Done."), needs=TaskNeeds(())) == "task_not_done"


@pytest.mark.parametrize(
    ("finding", "text_cause"), [("call_in_text", "call_in_text"), ("parse_error", "call_unreadable")]
)
@pytest.mark.parametrize("needs_reply", [False, True])
def test_find_cause_of_quoted_call_is_the_result_if_no_call_is_missing(
    finding: str, text_cause: str, needs_reply: bool
) -> None:
    quoted = build_text_turn(1, "state_patch()", finding=finding)
    needs = TaskNeeds(("state_patch",), needs_reply=needs_reply)
    assert find_code(build_calling_turn(0, PATCHED), quoted, needs=needs) == "task_not_done"
    unknown_needs = TaskNeeds(None, needs_reply=needs_reply)
    assert find_code(build_calling_turn(0, READ), quoted, needs=unknown_needs) == text_cause
