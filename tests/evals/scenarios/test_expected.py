"""Tests of verdicts by expected calls and reply."""

import pytest

from tests.evals.manual_trial import ManualTrial
from tests.evals.records import build_cut_turn, build_ended, build_result, build_text_turn


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
