"""Tests of the order of the judging rules: cancelled, not applicable, infrastructure error, broken off, checks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.evals.manual_trial import ManualTrial
from tests.evals.records import (
    build_calling_turn,
    build_cut_turn,
    build_ended,
    build_failed_turn,
    build_result,
    build_right_arguments,
    build_text_turn,
)
from toolbench.engine.events import EndReason, ExchangeError, LoopResult, TurnRecord
from toolbench.engine.types import JsonObject, SchemaError
from toolbench.evals.agents.verdict import AGENT_ORDER, TOOL_BY_AGENT
from toolbench.evals.judging import failure_classes
from toolbench.evals.judging import verdict as judging
from toolbench.evals.judging.diagnosis import Problem, locate_problem
from toolbench.evals.types import Verdict
from toolbench.evals.user_cases.parse import parse_case
from toolbench.evals.user_cases.scenario import UserCaseScenario

RATE_LIMITED = ExchangeError("rate_limited", "Too many requests.", 429)
OFF_FORMAT = ExchangeError("model_format", "The model produced output that …", 500, infrastructure=False)


def judge_trial(record: LoopResult, slug: str = "happy_path") -> Verdict:
    return ManualTrial(slug).judge(record)


@pytest.mark.parametrize(
    ("end", "expected"), [(EndReason.CANCELLED, "cancelled"), (EndReason.BUDGET_SPENT, "budget_spent")]
)
def test_judge_stopped_trial_counts_in_no_rate(end: EndReason, expected: str) -> None:
    verdict = judge_trial(build_ended(build_text_turn(0, "Done."), end=end))
    assert (verdict.outcome, verdict.task_pass, verdict.parity_pass) == ("cancelled", None, None)
    assert (verdict.failure_class, verdict.category) == (expected, "")


def test_judge_tools_off_is_na_and_keeps_the_parity_pass() -> None:
    done, other = (judge_trial(build_ended(build_text_turn(0, text, tools_sent=False))) for text in ("Done.", "Hello"))
    assert (done.outcome, done.task_pass, done.parity_pass) == ("na", None, True)
    assert (other.outcome, other.task_pass, other.parity_pass) == ("na", None, False)
    assert other.category == "ASSERTION_FAILED"


def test_judge_tools_off_is_no_parity_pass_if_the_answer_broke_off() -> None:
    record = build_cut_turn(0, "Done")
    verdict = judge_trial(build_ended(replace(record, request=build_text_turn(0, "", tools_sent=False).request)))
    assert (verdict.outcome, verdict.task_pass, verdict.parity_pass) == ("na", None, False)


def test_judge_tools_off_is_na_even_with_a_provider_error() -> None:
    record = build_failed_turn(0, RATE_LIMITED)
    off = build_ended(
        record, build_text_turn(1, "", tools_sent=False), end=EndReason.PROVIDER_ERROR, error=RATE_LIMITED
    )
    assert judge_trial(off).outcome == "infra"
    silent = build_ended(
        build_text_turn(0, "Hello", tools_sent=False), end=EndReason.PROVIDER_ERROR, error=RATE_LIMITED
    )
    assert judge_trial(silent).outcome == "na"


def test_judge_infrastructure_error_has_no_task_pass_and_no_parity_pass() -> None:
    verdict = judge_trial(
        build_ended(build_failed_turn(0, RATE_LIMITED), end=EndReason.PROVIDER_ERROR, error=RATE_LIMITED)
    )
    assert (verdict.outcome, verdict.task_pass, verdict.parity_pass) == ("infra", None, False)
    assert (verdict.failure_class, verdict.category) == ("rate_limited", "RATE_LIMIT")
    assert verdict.sentence == "Turn 1: Too many requests."


def test_judge_model_failure_with_status_500_is_a_failure() -> None:
    verdict = judge_trial(build_ended(build_failed_turn(0, OFF_FORMAT), end=EndReason.PROVIDER_ERROR, error=OFF_FORMAT))
    assert (verdict.outcome, verdict.task_pass, verdict.failure_class) == ("fail", False, "answer_off_format")
    assert verdict.category == "UPSTREAM_5XX"


def test_judge_trial_deadline_is_a_failure_with_its_own_class() -> None:
    trial = ManualTrial("happy_path")
    verdict = trial.judge(
        build_ended(
            build_calling_turn(0, trial.get()), build_calling_turn(1, trial.patch()), end=EndReason.DEADLINE_EXCEEDED
        )
    )
    assert (verdict.outcome, verdict.task_pass, verdict.failure_class) == ("fail", False, "deadline_exceeded")
    assert verdict.category == "TIMEOUT"


def test_judge_right_state_at_max_turns_is_no_pass() -> None:
    trial = ManualTrial("happy_path")
    turns = [build_calling_turn(turn, trial.patch()) for turn in range(12)]
    verdict = trial.judge(build_ended(*turns, end=EndReason.MAX_TURNS_EXCEEDED))
    assert (verdict.outcome, verdict.failure_class, verdict.category) == ("fail", "max_turns_exceeded", "EXCEPTION")
    assert verdict.first_bad is not None
    assert verdict.first_bad.turn == 11


def test_judge_takes_the_first_unrecovered_problem() -> None:
    trial = ManualTrial("happy_path")
    recovered = build_calling_turn(0, trial.get(workspace_id="elsewhere"))
    cause = build_calling_turn(2, trial.patch(key="title"))
    record = build_ended(
        recovered, build_calling_turn(1, trial.get()), cause, build_text_turn(3, "Done."), end=EndReason.TOOL_ERROR
    )
    verdict = trial.judge(record)
    assert (verdict.failure_class, verdict.first_bad and verdict.first_bad.turn) == ("arguments_refused", 2)


def test_judge_unrecovered_problem_does_not_prevent_a_pass() -> None:
    trial = ManualTrial("happy_path")
    record = build_ended(
        build_calling_turn(0, trial.get(workspace_id="elsewhere")),
        build_calling_turn(1, trial.patch()),
        build_text_turn(2, "Done."),
    )
    assert trial.judge(record).outcome == "pass"


def _iter_failing_calls() -> Iterator[Verdict]:
    codes = {code for row in failure_classes.load_classes() for code in row.envelope}
    for code in sorted(codes):
        yield judge_trial(
            build_ended(
                build_calling_turn(0, build_result("state_patch", {}, code=code)),
                build_text_turn(1, ""),
                end=EndReason.TOOL_ERROR,
            )
        )
    error = SchemaError("$.ops", "missing", "is required")
    broken = build_result("state_patch", {}, code="ARGUMENT_ERROR", schema_errors=[error])
    yield judge_trial(build_ended(build_calling_turn(0, broken), build_text_turn(1, ""), end=EndReason.TOOL_ERROR))
    yield judge_trial(
        build_ended(
            build_calling_turn(0, build_result("state_patch", {}, code="OTHER")),
            build_text_turn(1, ""),
            end=EndReason.TOOL_ERROR,
        )
    )


def _iter_failing_exchanges() -> Iterator[Verdict]:
    for row in failure_classes.load_classes():
        for code in row.exchange:
            error = ExchangeError(code, "", None, infrastructure=row.infrastructure)
            yield judge_trial(build_ended(build_failed_turn(0, error), end=EndReason.PROVIDER_ERROR, error=error))
    unnamed = ExchangeError("never_heard_of", "", None)
    yield judge_trial(build_ended(build_failed_turn(0, unnamed), end=EndReason.PROVIDER_ERROR, error=unnamed))


def _iter_ends_and_answers() -> Iterator[Verdict]:
    for end in EndReason:
        yield judge_trial(build_ended(build_text_turn(0, "Hello"), end=end))
    for finding in ("call_in_text", "parse_error", "unasked_tool_calls", "constraint_ignored", "stream_cut"):
        yield judge_trial(build_ended(build_text_turn(0, "Hello", finding=finding), end=EndReason.NO_TOOL_CALLS))
    yield judge_trial(
        build_ended(build_text_turn(0, "<tool_call>", finding="call_in_text"), end=EndReason.NO_TOOL_CALLS)
    )
    yield judge_trial(build_ended(build_text_turn(0, ""), end=EndReason.NO_TOOL_CALLS))
    yield judge_trial(build_ended(build_text_turn(0, "x", finish="length"), end=EndReason.NO_TOOL_CALLS))
    yield judge_trial(build_ended(build_text_turn(0, "Hello", tools_sent=False)))


def _iter_scenario_failures() -> Iterator[Verdict]:
    trial = ManualTrial("happy_path")
    yield trial.judge(build_ended(build_calling_turn(0, trial.get()), build_text_turn(1, "Done.")))
    yield trial.judge(build_ended(build_calling_turn(0, trial.patch(value="baz")), build_text_turn(1, "Done.")))
    yield ManualTrial("happy_path").judge(build_ended(build_calling_turn(0, trial.patch()), build_text_turn(1, "")))
    parallel = ManualTrial("happy_path_parallel")
    yield parallel.judge(build_ended(build_calling_turn(0, parallel.patch()), build_text_turn(1, "Done.")))
    guard = ManualTrial("long_arguments_guard")
    too_large = build_result("state_patch", "x", code="ARGUMENTS_TOO_LARGE", parse_status="too_large")
    yield guard.judge(
        build_ended(build_calling_turn(0, too_large), build_text_turn(1, "Done."), end=EndReason.TOOL_ERROR)
    )
    weather = ManualTrial("weather")
    wrong = weather.call("get_weather", city="nowhere")
    yield weather.judge(build_ended(build_calling_turn(0, wrong), end=EndReason.MAX_TURNS_EXCEEDED))
    yield weather.judge(build_ended(build_calling_turn(0, wrong, wrong), end=EndReason.MAX_TURNS_EXCEEDED))
    yield judge_trial(build_ended(build_text_turn(0, "Sure", tools_sent=False)), "chat_only")
    lone = build_ended(build_text_turn(0, "Hello"), end=EndReason.NO_TOOL_CALLS)
    yield judging.mark_tools_dropped(judge_trial(lone), lone)
    plain = ManualTrial("chat_plain")
    yield plain.judge(
        build_ended(build_calling_turn(0, build_result("clock_now", {})), build_text_turn(1, plain.values["sum"]))
    )
    mixed = ManualTrial("parallel_mixed")
    yield mixed.judge(
        build_ended(
            build_calling_turn(0, build_result("lock_door", {"room": mixed.values["room3"]})),
            build_text_turn(1, "One door."),
        )
    )
    sql = ManualTrial("agent_sql")
    query = {"sql_query": "SELECT 1", "explanation": "one", "tables_used": ["trips"]}
    yield sql.judge(
        build_ended(build_calling_turn(0, build_result("generate_sql", query)), end=EndReason.MAX_TURNS_EXCEEDED)
    )
    chain = ManualTrial("agent_chain")
    backwards = [
        build_result(TOOL_BY_AGENT[agent], build_right_arguments(agent, chain.values))
        for agent in reversed(AGENT_ORDER)
    ]
    yield chain.judge(
        build_ended(
            *(build_calling_turn(turn, item) for turn, item in enumerate(backwards)),
            build_text_turn(4, "It is finished."),
        )
    )
    yield ManualTrial("language_en").judge(
        build_ended(build_calling_turn(0, build_result("show_menu", {"day": 1})), build_text_turn(1, "The menu."))
    )


def test_mark_tools_dropped_replaces_class_of_a_failed_task() -> None:
    cut = build_ended(build_text_turn(0, "The weather is", finish="length"), end=EndReason.NO_TOOL_CALLS)
    verdict = judging.mark_tools_dropped(judge_trial(cut), cut)
    assert (verdict.outcome, verdict.failure_class) == ("fail", "tools_dropped")
    assert verdict.sentence.startswith("Turn 1: the server's chat template dropped the tools")
    assert verdict.category == judge_trial(cut).category


def test_mark_tools_dropped_keeps_verdict_without_a_judged_answer() -> None:
    trial = ManualTrial("happy_path")
    overdue = build_ended(build_calling_turn(0, trial.get()), end=EndReason.DEADLINE_EXCEEDED)
    refused = build_ended(build_failed_turn(0, RATE_LIMITED), end=EndReason.PROVIDER_ERROR, error=RATE_LIMITED)
    for record in (overdue, refused):
        assert judging.mark_tools_dropped(judge_trial(record), record) == judge_trial(record)


def test_judge_can_give_every_judged_failure_class() -> None:
    verdicts = [
        *_iter_failing_calls(),
        *_iter_failing_exchanges(),
        *_iter_ends_and_answers(),
        *_iter_scenario_failures(),
    ]
    reached = {verdict.failure_class for verdict in verdicts} - {""}
    assert reached == {row.code for row in failure_classes.load_classes() if row.judged}


def test_judge_gives_every_failure_a_sentence_and_a_rule() -> None:
    for verdict in [
        *_iter_failing_calls(),
        *_iter_failing_exchanges(),
        *_iter_ends_and_answers(),
        *_iter_scenario_failures(),
    ]:
        assert verdict.outcome == "pass" or verdict.sentence
        assert verdict.rule


def test_judge_separates_task_pass_from_parity_pass() -> None:
    trial = ManualTrial("happy_path")
    turns = build_calling_turn(0, trial.get()), build_calling_turn(1, trial.patch())
    silent, done = (trial.judge(build_ended(*turns, build_text_turn(2, text))) for text in ("It is done now.", "Done."))
    assert (done.outcome, done.task_pass, done.parity_pass, done.category) == ("pass", True, True, "")
    assert (silent.outcome, silent.task_pass, silent.parity_pass) == ("pass", True, False)
    assert silent.category == "ASSERTION_FAILED"
    other = ManualTrial("happy_path")
    failed = other.judge(build_ended(build_calling_turn(0, other.get()), build_text_turn(1, "Done.")))
    assert (failed.outcome, failed.task_pass, failed.parity_pass) == ("fail", False, False)


def test_judge_without_case_study_rule_categorises_failures_only() -> None:
    weather = ManualTrial("weather")
    failed = judge_trial(build_ended(build_text_turn(0, "Hello"), end=EndReason.NO_TOOL_CALLS), "weather")
    assert (failed.outcome, failed.parity_pass, failed.category) == ("fail", None, "NO_TOOL_CALLS")
    refused = weather.judge(
        build_ended(build_failed_turn(0, RATE_LIMITED), end=EndReason.PROVIDER_ERROR, error=RATE_LIMITED)
    )
    assert (refused.outcome, refused.parity_pass, refused.category) == ("infra", None, "RATE_LIMIT")
    off = judge_trial(build_ended(build_text_turn(0, "Hello", tools_sent=False)), "weather")
    assert (off.outcome, off.parity_pass, off.category) == ("na", None, "")


def test_judge_avoided_is_false_by_default() -> None:
    trial = ManualTrial("happy_path")
    problem = Problem("state_wrong", locate_problem(0, sentence="the state is wrong."))
    checked = judging.CheckedResult(
        trial.instance, build_ended(build_text_turn(0, "Hello")), "A rule.", (), None, problem
    )
    assert judging.judge(checked).avoided is False


def test_judge_blank_final_text_passes_by_default() -> None:
    record = build_ended(build_calling_turn(0, build_result("state_get", {})), build_text_turn(1, ""))
    problem = Problem("state_wrong", locate_problem(0, sentence="the state is wrong."))
    checked = judging.CheckedResult(ManualTrial("happy_path").instance, record, "A rule.", (), None, problem)
    assert judging.judge(checked).outcome == "pass"


def test_judge_message_of_the_end_replaces_the_class_sentence() -> None:
    trial = ManualTrial("happy_path")
    record = build_ended(build_calling_turn(0, trial.get()), end=EndReason.MAX_TURNS_EXCEEDED)
    verdict = trial.judge(replace(record, message="No final answer within 12 turns."))
    assert verdict.sentence == "Turn 1: No final answer within 12 turns."
    assert trial.judge(record).sentence == f"Turn 1: {failure_classes.lookup_class('max_turns_exceeded').sentence}"


def test_version_of_judging_is_4_with_its_new_classes() -> None:
    """A replay accepts changes of stored verdicts only to the classes that a later version newly gives."""
    assert judging.VERSION == 4
    assert list(judging.CASE_STUDY_RULE_VERSIONS) == [3]
    expected = {
        2: {"empty_final", "empty_answer"},
        3: {
            "", "arguments_break_schema", "arguments_not_json", "arguments_refused", "arguments_too_large",
            "call_in_tags", "call_unreadable", "constraint_ignored", "cut_by_length", "empty_answer", "empty_final",
            "gave_up_after_error", "missing_call", "not_parallel", "stream_cut", "text_instead_of_call",
            "too_many_calls", "tool_crashed", "tool_error", "tool_not_implemented", "tool_output_too_large",
            "tool_output_unserializable", "tool_timeout", "unasked_calls", "unknown_tool", "wrong_arguments",
            "wrong_reply", "wrong_state", "wrong_tool", "wrong_workspace",
        },
        4: {"missing_call", "too_many_calls", "wrong_order", "wrong_tool"},
    }  # fmt: skip
    assert expected == judging.NEW_CLASSES_BY_VERSION


CANCEL: JsonObject = {"type": "function", "function": {"name": "cancel", "parameters": {"type": "object"}}}
ANY_CALL: JsonObject = {"name": "cancel", "more": True}
IN_ORDER: JsonObject = {"calls": [{"name": "cancel", "arguments": {"id": 1}}], "ordered": True, "others": True}
TWO_CALLS: JsonObject = {"calls": [{"name": "cancel", "arguments": {"id": number}} for number in (1, 9)]}
ONE, NINE = (build_result("cancel", {"id": number}) for number in (1, 9))
FAILED_ONE = build_result("cancel", {"id": 1}, code="TOOL_FAILED")
EXTRA_ID = [SchemaError("$.id", "extra", "")]


def build_refused_turn(code: str, **fields: Any) -> TurnRecord:
    return build_calling_turn(0, build_result("cancel", {}, code=code, **fields))


@pytest.mark.parametrize(
    ("expect", "turns", "failure_class"),
    [
        (
            ANY_CALL,
            [build_refused_turn("ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")],
            "arguments_not_json",
        ),
        (ANY_CALL, [build_refused_turn("ARGUMENTS_TOO_LARGE", parse_status="too_large")], "arguments_too_large"),
        (ANY_CALL, [build_refused_turn("ARGUMENT_ERROR", schema_errors=EXTRA_ID)], "arguments_break_schema"),
        (ANY_CALL, [build_refused_turn("TOOL_NOT_ALLOWED")], "unknown_tool"),
        (TWO_CALLS, [build_calling_turn(0, FAILED_ONE, NINE)], ""),
        (IN_ORDER, [build_calling_turn(0, NINE, ONE)], ""),
        (IN_ORDER | {"checks": [{"answer_contains": "17"}]}, [build_calling_turn(0, NINE, ONE)], "wrong_reply"),
        (IN_ORDER | {"checks": [{"calls_at_most": 1}]}, [build_calling_turn(0, NINE, ONE)], "too_many_calls"),
        (IN_ORDER | {"checks": [{"together": 3}]}, [build_calling_turn(0, NINE, ONE)], "not_parallel"),
        ({"no_call": True}, [build_text_turn(0, " ")], "empty_answer"),
        ({"no_call": True}, [build_cut_turn(0, "Sure. ")], "stream_cut"),
        *(
            ({"checks": [{"called": "cancel"}]}, [build_refused_turn(row.envelope[0]), build_cut_turn(1, "")], row.code)
            for row in failure_classes.load_classes()
            if row.envelope and not row.code.startswith(("arguments_", "unknown_"))
        ),
        *(
            ({"no_call": True}, [build_text_turn(0, "Yes", finding=row.findings[0]), build_cut_turn(1, "")], row.code)
            for row in failure_classes.load_classes()
            if row.findings
        ),
    ],
)
def test_judge_version_3_gives_only_its_new_classes(
    expect: JsonObject, turns: list[TurnRecord], failure_class: str
) -> None:
    scenario = UserCaseScenario("mine", 1, "", parse_case({"tools": [CANCEL], "messages": "Go.", "expect": expect}))
    instance = scenario.draw_instance(0)
    done = [] if turns[-1].answer and not turns[-1].answer.calls else [build_text_turn(1, "Done.")]
    verdict = scenario.judge(instance, build_ended(*turns, *done), scenario.open(instance))
    assert verdict.failure_class == failure_class
    assert failure_class in judging.NEW_CLASSES_BY_VERSION[3]


def test_judge_gives_a_class_of_version_3_for_a_refused_last_call() -> None:
    refused = build_result("state_get", "", code="ARGUMENTS_JSON_PARSE_ERROR", parse_status="invalid_json")
    record = build_ended(build_calling_turn(0, refused, finish="length"))
    verdict = ManualTrial("happy_path").judge(record)
    assert verdict.failure_class == "cut_by_length"
    assert verdict.failure_class in judging.NEW_CLASSES_BY_VERSION[3]


@pytest.mark.parametrize("text", ["", "\u200b \n"])
@pytest.mark.parametrize("needed", [True, False])
def test_judge_blank_final_text_fails_only_if_a_text_is_needed(needed: bool, text: str) -> None:
    problem = Problem("state_wrong", locate_problem(0, sentence="the state is wrong."))
    record = build_ended(build_calling_turn(0, build_result("state_get", {})), build_text_turn(1, text))
    checked = judging.CheckedResult(
        ManualTrial("happy_path").instance, record, "A rule.", (), None, problem, needs_final_text=needed
    )
    verdict = judging.judge(checked)
    assert (verdict.outcome, verdict.failure_class) == (("fail", "empty_final") if needed else ("pass", ""))
    assert verdict.sentence == ("Turn 2: the last message has no visible character." if needed else "")
    assert [check.name for check in verdict.checks] == [judging.FINAL_TEXT_CHECK] * needed
