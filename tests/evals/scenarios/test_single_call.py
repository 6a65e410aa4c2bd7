"""Tests of verdicts on the tasks that need one call."""

import pytest

from tests.evals.manual_trial import ManualTrial
from tests.evals.records import build_calling_turn, build_ended, build_failed_turn, build_result, build_text_turn
from toolbench.engine.events import EndReason, ExchangeError, LoopResult, ToolResult
from toolbench.engine.types import SchemaError
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING

REASONED = {"confidence": 0.9, "reasoning": "it is about that"}


def end_after(*results: ToolResult) -> LoopResult:
    """Return the loop result of a run that ended after one turn with these results."""
    return build_ended(build_calling_turn(0, *results), end=EndReason.MAX_TURNS_EXCEEDED)


@pytest.mark.parametrize("kind", [PUBLISHED_WORDING, DRAWN])
def test_weather_one_call_with_the_right_city_passes(kind: str) -> None:
    trial = ManualTrial("weather", kind)
    verdict = trial.judge(end_after(trial.call("get_weather", city=f" {trial.values['city'].lower()} ")))
    assert (verdict.outcome, verdict.task_pass, verdict.parity_pass) == ("pass", True, None)
    assert trial.values["city"] in verdict.rule


def test_weather_wrong_city_is_named() -> None:
    trial = ManualTrial("weather", seed=0)
    verdict = trial.judge(end_after(trial.call("get_weather", city="gabagaga")))
    assert verdict.failure_class == "wrong_arguments"
    assert verdict.sentence == 'Turn 1, parsed call 1: $.city is "gabagaga"; "Oslo" is expected.'


def test_weather_two_calls_are_too_many() -> None:
    trial = ManualTrial("weather")
    right = trial.call("get_weather", city=trial.values["city"])
    assert trial.judge(end_after(right, right)).failure_class == "too_many_calls"


def test_weather_another_tool_is_wrong_arguments() -> None:
    trial = ManualTrial("weather")
    verdict = trial.judge(end_after(trial.call("clock_now")))
    assert verdict.failure_class == "wrong_arguments"
    assert "clock_now was called; the task needs get_weather." in verdict.sentence


@pytest.mark.parametrize(
    ("finding", "text", "expected"),
    [
        ("", "It is sunny.", "no_tool_calls"),
        ("", "  ", "empty_answer"),
        ("call_in_text", '{"name": "get_weather"}', "text_instead_of_call"),
        ("call_in_text", "<tool_call>get_weather</tool_call>", "call_in_tags"),
        ("parse_error", "```json\n{", "call_unreadable"),
        ("unasked_tool_calls", "", "unasked_calls"),
        ("constraint_ignored", "It is sunny.", "constraint_ignored"),
    ],
)
def test_weather_answer_without_a_call_has_its_failure_class(finding: str, text: str, expected: str) -> None:
    record = build_ended(build_text_turn(0, text, finding=finding), end=EndReason.NO_TOOL_CALLS)
    verdict = ManualTrial("weather").judge(record)
    assert (verdict.outcome, verdict.failure_class, verdict.category) == ("fail", expected, "NO_TOOL_CALLS")


def test_weather_text_answer_fails_under_relaxed_tool_use() -> None:
    assert (
        ManualTrial("weather").judge(build_ended(build_text_turn(0, "It is sunny."))).failure_class == "no_tool_calls"
    )


def test_weather_dead_endpoint_is_infrastructure_without_parity_pass() -> None:
    error = ExchangeError("connection_refused", "Nothing accepted the connection.")
    verdict = ManualTrial("weather").judge(
        build_ended(build_failed_turn(0, error), end=EndReason.PROVIDER_ERROR, error=error)
    )
    assert (verdict.outcome, verdict.task_pass, verdict.parity_pass) == ("infra", None, None)
    assert verdict.category == "CONNECTION_ERROR"


def test_classify_intent_right_choice_passes_and_valid_wrong_one_fails() -> None:
    trial = ManualTrial("classify_intent", seed=0)
    right = trial.judge(end_after(trial.call("classify_intent", workspace_id="mobility", **REASONED)))
    wrong = trial.judge(end_after(trial.call("classify_intent", workspace_id="energy", **REASONED)))
    assert [right.outcome, wrong.outcome] == ["pass", "fail"]
    assert [(item.counts["calls"], item.counts["valid_calls"]) for item in (right, wrong)] == [(1, 1), (1, 1)]
    assert [check.ok for check in wrong.checks] == [True, False]


def test_classify_intent_choice_outside_the_enum_breaks_the_schema() -> None:
    arguments = {"workspace_id": "sea", **REASONED}
    broken = build_result(
        "classify_intent", arguments, code="ARGUMENT_ERROR", schema_errors=[SchemaError("$.workspace_id", "enum", "")]
    )
    verdict = ManualTrial("classify_intent").judge(end_after(broken))
    assert verdict.failure_class == "arguments_break_schema"
    assert verdict.sentence.endswith('classify_intent takes one of "mobility", "energy", "housing".')
