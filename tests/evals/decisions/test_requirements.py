"""Tests of the bounds of a configuration and of the reasons against it."""

from typing import Any

import pytest

from toolbench.evals.decisions.assessments import Assessment, DecisionRule, MeasuredConfig
from toolbench.evals.decisions.requirements import assess_config, count_passes_without_failure
from toolbench.evals.statistics.intervals import ScenarioSample, StoppingDesign

RULE = DecisionRule("fastest", 90, 20_000)


def measured(passed: int = 100, tried: int = 100, **fields: Any) -> MeasuredConfig:
    answered = fields.setdefault("answered", tried)
    fields.setdefault("times", [1000.0 + place for place in range(answered)])
    return MeasuredConfig("a", "Model a", passed, tried, **fields)


def names(standing: Assessment) -> list[str]:
    return [reason.name for reason in standing.reasons]


def test_whoever_clears_both_bounds_qualifies() -> None:
    assert assess_config(measured(), RULE).state == "qualified"


def test_a_pass_after_a_retried_error_is_not_delivered() -> None:
    standing = assess_config(measured(100, 100, retried_passes=15), RULE)
    assert names(standing) == ["delivery"]
    assert (
        "Too many trials without an answer: 15 of 100 (only after a manual repeat × 15). End-to-end success 85/100"
        in (standing.reasons[0].sentence)
    )


def test_bounds_of_trials_that_went_on_until_decided_hold_at_every_look() -> None:
    fixed, until = ScenarioSample(38, 40), ScenarioSample(38, 40, StoppingDesign(0.05))
    rule = DecisionRule("fastest", 75, None)
    low = assess_config(measured(38, 40, end_to_end_by_scenario=(fixed,)), rule).low
    standing = assess_config(measured(38, 40, end_to_end_by_scenario=(until,)), rule)
    assert standing.low < low
    assert "stopped" in names(standing)


def test_the_lower_bound_decides_and_not_the_share() -> None:
    """38 of 40 are 95 %, but not at least 90 % for sure."""
    standing = assess_config(measured(38, 40), DecisionRule("fastest", 90, None))
    assert names(standing) == ["undecided", "p95-unknown"]
    assert standing.state == "open"


def test_a_bound_in_a_sentence_stands_on_its_own_side_of_the_target() -> None:
    """84 of 100 reach up to 89.94 %: "[76–90] %, all of it below 90 %" would deny itself."""
    standing = assess_config(measured(84, 100), RULE)
    assert "end-to-end success 84/100 [76–89.9] %, all of it below 90 %" in standing.reasons[0].sentence


def test_lost_trials_are_refused_for_delivery_although_every_answer_passed() -> None:
    standing = assess_config(measured(102, 120, answered=102, infra_errors=(("rate_limited", 18),)), RULE)
    assert names(standing) == ["delivery"]
    assert standing.state == "refused"
    assert standing.reasons[0].sentence == (
        "Too many trials without an answer: 18 of 120 (rate_limited × 18). End-to-end success 102/120 [78–90] %, "
        "lower bound below 90 %; of the answers, 102/102 passed."
    )


def test_bad_answers_are_not_blamed_on_delivery() -> None:
    assert names(assess_config(measured(50, 120, answered=110), RULE)) == ["success"]


@pytest.mark.parametrize(("answers", "more"), [(40, "32 more trials"), (60, "12 more trials"), (71, "1 more trial.")])
def test_open_p95_bound_says_what_closes_it(answers: int, more: str) -> None:
    standing = assess_config(measured(answers, answers), DecisionRule("fastest", 80, 20_000))
    assert names(standing) == ["p95-unknown"]
    assert f"is open with {answers} answers: it closes with {more}" in standing.reasons[0].sentence


def test_from_72_answers_on_the_upper_bound_of_p95_is_a_number() -> None:
    assert assess_config(measured(72, 72), DecisionRule("fastest", 80, 20_000)).state == "qualified"


def test_the_upper_bound_of_p95_decides_and_not_its_value() -> None:
    times = [1000.0] * 93 + [30_000.0] * 7
    fine = [1000.0] * 97 + [30_000.0] * 3
    assert names(assess_config(measured(times=times), RULE)) == ["p95"]
    assert names(assess_config(measured(times=fine), RULE)) == ["p95"]
    assert fine[94] == 1000.0


def test_a_models_latency_on_this_machine_takes_no_part() -> None:
    here = measured(is_local=True)
    assert names(assess_config(here, RULE)) == ["local"]
    assert assess_config(here, RULE).p95 is None
    assert names(assess_config(here, DecisionRule("cheapest", 90, None))) == ["cost-unknown"]


def test_trials_added_by_hand_decide_nothing_until_fresh_ones_confirm() -> None:
    standing = assess_config(measured(added_manually=20), RULE)
    assert names(standing) == ["by-hand"]
    assert standing.state == "confirm"


def test_trials_that_ended_when_decided_decide_nothing_either() -> None:
    assert names(
        assess_config(measured(end_to_end_by_scenario=(ScenarioSample(100, 100, StoppingDesign(0.05)),)), RULE)
    ) == ["stopped"]


def test_repeats_of_one_answer_claim_no_bound() -> None:
    assert "repeats" in names(assess_config(measured(has_repeated_answers=True), RULE))


def test_another_task_is_no_rival() -> None:
    assert "scenarios" in names(assess_config(measured(missing_scenarios=("long_arguments_guard",)), RULE))


def test_73_straight_passes_are_needed_for_95_percent() -> None:
    assert count_passes_without_failure(0.95) == 73
    assert count_passes_without_failure(0.90) == 35
    assert (
        "73 passes without a failure are needed for 95 %."
        in assess_config(measured(72, 72), DecisionRule("fastest", 95)).reasons[0].sentence
    )
    assert assess_config(measured(73, 73), DecisionRule("fastest", 95)).state == "qualified"
