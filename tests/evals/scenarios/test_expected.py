"""Tests of verdicts by expected calls and reply."""

import pytest

from tests.evals.manual_trial import ManualTrial
from tests.evals.records import build_calling_turn, build_cut_turn, build_ended, build_result, build_text_turn
from toolbench.evals.scenarios.expected import TaskExpectation, judge


@pytest.mark.parametrize(("mark", "outcome"), [("?", "pass"), ("\uff1f", "pass"), ("\u061f", "pass"), (".", "fail")])
def test_judge_missing_value_needs_a_question_mark_of_any_script(mark: str, outcome: str) -> None:
    verdict = ManualTrial("restraint_missing").judge(build_ended(build_text_turn(0, f"Which one{mark}")))
    assert verdict.outcome == outcome


def test_judge_answer_that_breaks_off_inside_a_call_fails() -> None:
    trial = ManualTrial("restraint_plain")
    call = build_result(trial.instance.tools[0].name, "{")
    verdict = trial.judge(build_ended(build_cut_turn(0, "Sure. ", call)))
    assert (verdict.outcome, verdict.failure_class) == ("fail", "stream_cut")
    assert [check.ok for check in verdict.checks if check.name == "calls no tool"] == [False]


@pytest.mark.parametrize(
    ("given", "outcome", "problem"),
    [
        (({"city": "Rome"}, {"city": "Bern"}), "pass", ""),
        (({"city": "Bern"}, {"city": "Rome"}), "pass", ""),
        (({"city": "Rome"},), "fail", "missing_call"),
        (({"city": "Rome"}, {"city": "Rome"}, {"city": "Rome"}), "fail", "too_many_calls"),
    ],
)
def test_judge_matches_as_many_expected_calls_as_possible(
    given: tuple[dict[str, str], ...], outcome: str, problem: str
) -> None:
    trial = ManualTrial("parallel_same")
    tool = trial.instance.tools[0].name
    calls = ({"tool": tool, "arguments": {}, "any": ["city"]}, {"tool": tool, "arguments": {"city": "Rome"}})
    made = [build_result(tool, arguments) for arguments in given]
    record = build_ended(build_calling_turn(0, *made), build_text_turn(1, "Done."))
    verdict = judge(trial.instance, record, TaskExpectation(calls, has_one_turn=False))
    assert (verdict.outcome, verdict.failure_class) == (outcome, problem)
