"""Tests of the choice of a leader by a rule, and of decisions without a winner."""

from dataclasses import replace

import numpy as np
import pytest

from toolbench.evals.decisions.assessments import DecisionRule, IntervalEstimate, MeasuredConfig
from toolbench.evals.decisions.choice import (
    choose_config,
    compute_cost_ratio,
    count_trials_to_separate,
    find_pareto_front,
)

RULE = DecisionRule("fastest", 90, 20_000)


def build_measured(
    name: str, millis: float, *, passed: int = 100, tried: int = 100, cost: IntervalEstimate | None = None
) -> MeasuredConfig:
    return MeasuredConfig(name, name, passed, tried, tried, [millis + index for index in range(tried)], cost)


def test_choose_config_fastest_is_clear_only_if_intervals_are_disjoint() -> None:
    apart = choose_config([build_measured("slow", 5000), build_measured("quick", 1000)], RULE)
    assert (apart.verdict, apart.leader and apart.leader.measured.key) == ("clear", "quick")
    near = choose_config([build_measured("a", 1003), build_measured("b", 1000)], RULE)
    assert near.verdict == "unclear"
    assert near.sentence.startswith("No clear winner: b is ahead, but its interval overlaps with that of a;")
    assert near.sentence.endswith("more trials of each would decide it.")


def test_choose_config_winner_among_several_needs_confirmation() -> None:
    assert choose_config([build_measured("a", 1000), build_measured("b", 9000)], RULE).needs_confirmation
    assert not choose_config([build_measured("a", 1000)], RULE).needs_confirmation


def test_choose_config_none_qualified_names_closest_and_more_trials() -> None:
    decision = choose_config(
        [build_measured("a", 1000, passed=58, tried=60), build_measured("b", 1000, passed=20, tried=60)], RULE
    )
    assert decision.verdict == "none"
    assert decision.leader is None
    assert decision.sentence == (
        "No clear winner: no configuration qualifies. a comes closest to being the fastest. It is not decided: "
        "end-to-end success is 58/60 [89–99] %, and 90 % lies inside the interval. 18 more trials at this rate would "
        "decide it. The upper bound of its p95 is open with 60 answers: it closes with 12 more trials."
    )


def test_choose_config_of_nothing_names_number_of_passes_needed() -> None:
    decision = choose_config([], DecisionRule("cheapest", 95))
    assert decision.sentence.endswith("73 passes without a failure are needed for 95 %.")


def test_choose_config_names_undecided_config_that_would_be_faster() -> None:
    found = choose_config([build_measured("sure", 2000), build_measured("quick", 100, passed=93)], RULE)
    assert found.verdict == "alone"
    assert "quick would be faster and is not decided yet" in found.sentence


def test_choose_config_cheapest_uses_interval_of_cost_per_success() -> None:
    cheap, dear = IntervalEstimate(0.01, 0.009, 0.011), IntervalEstimate(0.02, 0.018, 0.022)
    found = choose_config(
        [build_measured("dear", 1, cost=dear), build_measured("cheap", 1, cost=cheap)], DecisionRule("cheapest")
    )
    assert (found.verdict, found.leader and found.leader.measured.key) == ("clear", "cheap")


def test_find_pareto_front_keeps_undominated_points() -> None:
    assert find_pareto_front({"a": (1.0, 3.0), "b": (2.0, 2.0), "c": (2.0, 3.0), "d": (1.0, 3.0)}) == {"a", "b", "d"}


def test_choose_config_front_has_only_configs_that_meet_the_rule() -> None:
    refused, undecided = build_measured("refused", 10, passed=20), build_measured("undecided", 20, passed=93)
    assert choose_config([refused, undecided, build_measured("sure", 2000)], RULE).front == {"sure"}
    assert not choose_config([refused, undecided], RULE).front
    added_manually = replace(build_measured("added to", 900), added_manually=1)
    assert choose_config([refused, added_manually], RULE).front == {"added to"}


def test_compute_cost_ratio_interval_covers_95_percent() -> None:
    """Simulate 400 runs of 200 trials with correlated costs and passes: 95 % within three Monte-Carlo errors."""
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        passed = random.random(200) < 0.9
        costs = random.lognormal(-4, 0.5, 200) * np.where(passed, 1.0, 2.0)
        found = compute_cost_ratio(
            costs.sum(), (costs**2).sum(), passed_cost_sum=costs[passed].sum(), passed=int(passed.sum()), tried=200
        )
        truth = np.exp(-4 + 0.125) * (0.9 + 0.1 * 2) / 0.9
        covered += bool(found and found.low <= truth <= found.high)
    assert covered / 400 == pytest.approx(0.95, abs=3 * (0.95 * 0.05 / 400) ** 0.5)


def test_compute_cost_ratio_is_none_without_pass_and_zero_if_free() -> None:
    assert compute_cost_ratio(1.0, 1.0, passed_cost_sum=0.0, passed=0, tried=4) is None
    assert compute_cost_ratio(0.0, 0.0, passed_cost_sum=0.0, passed=4, tried=4) == IntervalEstimate(0, 0, 0)


def test_count_trials_to_separate_follows_square_root_of_number() -> None:
    assert count_trials_to_separate(IntervalEstimate(10, 8, 12), IntervalEstimate(11, 9, 13), 100) == 1500
    assert count_trials_to_separate(IntervalEstimate(10, 8, 12), IntervalEstimate(10, 8, 12), 100) is None
