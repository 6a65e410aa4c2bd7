"""Tests of verdicts by expected calls and reply."""

import pytest

from tests.evals.manual_trial import ManualTrial
from tests.evals.records import build_ended, build_text_turn


@pytest.mark.parametrize(("mark", "outcome"), [("?", "pass"), ("\uff1f", "pass"), ("\u061f", "pass"), (".", "fail")])
def test_judge_missing_value_needs_a_question_mark_of_any_script(mark: str, outcome: str) -> None:
    verdict = ManualTrial("restraint_missing").judge(build_ended(build_text_turn(0, f"Which one{mark}")))
    assert verdict.outcome == outcome
