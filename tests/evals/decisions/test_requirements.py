"""Tests of the bounds of a configuration and of the reasons against it."""

import math
from typing import Any

import pytest

from toolbench.evals.decisions.assessments import Assessment, DecisionRule, MeasuredConfig
from toolbench.evals.decisions.requirements import assess_config, count_passes_without_failure
from toolbench.evals.statistics import compute_quantile
from toolbench.evals.statistics.intervals import ScenarioSample, StoppingDesign

RULE = DecisionRule("fastest", 90, 20_000)


def build_measured(passed: int = 100, tried: int = 100, **fields: Any) -> MeasuredConfig:
    answered = fields.setdefault("answered", tried)
    fields.setdefault("times", [1000.0 + index for index in range(answered)])
    return MeasuredConfig("a", "Model a", passed, tried, **fields)


def list_reason_names(assessment: Assessment) -> list[str]:
    return [reason.name for reason in assessment.reasons]


def test_assess_config_qualifies_if_both_bounds_meet_the_rule() -> None:
    assert assess_config(build_measured(), RULE).state == "qualified"


def test_assess_config_pass_after_manual_repeat_is_not_delivered() -> None:
    assessment = assess_config(build_measured(100, 100, retried_passes=15), RULE)
    assert list_reason_names(assessment) == ["delivery"]
    assert assessment.reasons[0].sentence.startswith(
        "It has too many trials without an answer: 15 of 100 (passed only after a manual retry × 15). "
        "End-to-end success is 85/100"
    )


def test_assess_config_sequential_stopping_lowers_the_lower_bound() -> None:
    fixed, until = ScenarioSample(38, 40), ScenarioSample(38, 40, StoppingDesign(0.05))
    rule = DecisionRule("fastest", 75, None)
    low = assess_config(build_measured(38, 40, end_to_end_by_scenario=(fixed,)), rule).low
    assessment = assess_config(build_measured(38, 40, end_to_end_by_scenario=(until,)), rule)
    assert assessment.low < low
    assert "stopped" in list_reason_names(assessment)


def test_assess_config_decides_by_lower_bound_not_by_share() -> None:
    """The share of 38 of 40 is 95 %, but its lower bound is below 90 %."""
    assessment = assess_config(build_measured(38, 40), DecisionRule("fastest", 90, None))
    assert list_reason_names(assessment) == ["undecided", "p95-unknown"]
    assert assessment.state == "open"


def test_assess_config_writes_bound_on_its_side_of_the_target() -> None:
    """The upper bound of 84 of 100 is 89.94 %: "[76–90] %" would contradict "below 90 %"."""
    assessment = assess_config(build_measured(84, 100), RULE)
    assert "success is 84/100 [76–89.9] %, and the whole interval is below 90 %" in assessment.reasons[0].sentence


def test_assess_config_unanswered_trials_are_refused_for_delivery() -> None:
    assessment = assess_config(build_measured(102, 120, answered=102, infra_errors=(("rate_limited", 18),)), RULE)
    assert list_reason_names(assessment) == ["delivery"]
    assert assessment.state == "refused"
    assert assessment.reasons[0].sentence == (
        "It has too many trials without an answer: 18 of 120 (rate_limited × 18). End-to-end success is 102/120 "
        "[78–90] %, and its lower bound is below 90 %; of the answers, 102/102 passed."
    )


def test_assess_config_wrong_answers_are_refused_for_success() -> None:
    assert list_reason_names(assess_config(build_measured(50, 120, answered=110), RULE)) == ["success"]


@pytest.mark.parametrize(("answers", "more"), [(40, "32 more trials"), (60, "12 more trials"), (71, "1 more trial.")])
def test_assess_config_open_p95_bound_names_the_missing_trials(answers: int, more: str) -> None:
    assessment = assess_config(build_measured(answers, answers), DecisionRule("fastest", 80, 20_000))
    assert list_reason_names(assessment) == ["p95-unknown"]
    assert f"is open with {answers} answers: it closes with {more}" in assessment.reasons[0].sentence


def test_assess_config_p95_has_an_upper_bound_from_72_answers() -> None:
    assert assess_config(build_measured(72, 72), DecisionRule("fastest", 80, 20_000)).state == "qualified"


def test_assess_config_decides_by_bounds_of_p95_not_by_value() -> None:
    for slow, names in ((0, []), (3, ["p95-undecided"]), (7, ["p95-undecided"]), (11, ["p95"])):
        assessment = assess_config(build_measured(times=[1000.0] * (100 - slow) + [30_000.0] * slow), RULE)
        assert list_reason_names(assessment) == names


def test_assess_config_trials_of_seven_scenarios_bring_p95_within_limit() -> None:
    times, samples = [1000.0] * 386 + [30_000.0] * 13, (ScenarioSample(57, 57),) * 7
    shortfall = assess_config(build_measured(399, 399, times=times, end_to_end_by_scenario=samples), RULE).shortfall
    assert shortfall is not None
    assert (shortfall.per_scenario, shortfall.total) == (34, 238)
    total = 399 + shortfall.total
    slow = math.ceil(13 * total / 399)
    high = compute_quantile([1000.0] * (total - slow) + [30_000.0] * slow, 0.95).high
    assert high is not None
    assert high <= 20_000


def test_assess_config_limit_inside_p95_interval_names_missing_trials() -> None:
    assessment = assess_config(build_measured(102, 102, times=[1100.0] * 99 + [30_000.0] * 3), RULE)
    assert assessment.state == "open"
    assert assessment.reasons[0].sentence == (
        "It is not decided: p95 is 1.1 s with an upper bound of 30.0 s, and the limit of 20 s lies inside the "
        "interval. 338 more trials at these times would decide it."
    )
    slower = assess_config(build_measured(102, 102, times=[1100.0] * 96 + [30_000.0] * 6), RULE)
    assert slower.shortfall is None
    assert "no number of trials would lower its upper bound to the limit" in slower.reasons[0].sentence


def test_assess_config_ignores_latency_of_a_local_model() -> None:
    here = build_measured(is_local=True)
    assert list_reason_names(assess_config(here, RULE)) == ["local"]
    assert assess_config(here, RULE).p95 is None
    assert list_reason_names(assess_config(here, DecisionRule("cheapest", 90, None))) == ["cost-unknown"]


def test_assess_config_trials_added_manually_need_confirmation() -> None:
    assessment = assess_config(build_measured(added_manually=20), RULE)
    assert list_reason_names(assessment) == ["by-hand"]
    assert assessment.state == "confirm"


def test_assess_config_sequential_trials_have_reason_stopped() -> None:
    assert list_reason_names(
        assess_config(build_measured(end_to_end_by_scenario=(ScenarioSample(100, 100, StoppingDesign(0.05)),)), RULE)
    ) == ["stopped"]


def test_assess_config_repeated_answers_have_reason_repeats() -> None:
    assert "repeats" in list_reason_names(assess_config(build_measured(has_repeated_answers=True), RULE))


def test_assess_config_missing_scenario_has_reason_scenarios() -> None:
    assert "scenarios" in list_reason_names(
        assess_config(build_measured(missing_scenarios=("long_arguments_guard",)), RULE)
    )


def test_count_passes_without_failure_is_73_for_95_percent() -> None:
    assert count_passes_without_failure(0.95) == 73
    assert count_passes_without_failure(0.90) == 35
    assert (
        "73 passes without a failure are needed for 95 %."
        in assess_config(build_measured(72, 72), DecisionRule("fastest", 95)).reasons[0].sentence
    )
    assert assess_config(build_measured(73, 73), DecisionRule("fastest", 95)).state == "qualified"
