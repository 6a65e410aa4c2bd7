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


def measured(
    name: str, millis: float, *, passed: int = 100, tried: int = 100, cost: IntervalEstimate | None = None
) -> MeasuredConfig:
    return MeasuredConfig(name, name, passed, tried, tried, [millis + place for place in range(tried)], cost)


def test_the_fastest_is_clear_only_where_intervals_lie_apart() -> None:
    apart = choose_config([measured("slow", 5000), measured("quick", 1000)], RULE)
    assert (apart.verdict, apart.leader and apart.leader.measured.key) == ("clear", "quick")
    near = choose_config([measured("a", 1003), measured("b", 1000)], RULE)
    assert near.verdict == "unclear"
    assert near.sentence.startswith("No clear winner: b is ahead, but its interval overlaps with that of a;")
    assert near.sentence.endswith("more trials of each would decide it.")


def test_a_winner_among_several_has_to_be_confirmed() -> None:
    assert choose_config([measured("a", 1000), measured("b", 9000)], RULE).needs_confirmation
    assert not choose_config([measured("a", 1000)], RULE).needs_confirmation


def test_nobody_qualifying_is_said_with_what_would_tell() -> None:
    none = choose_config([measured("a", 1000, passed=58, tried=60), measured("b", 1000, passed=20, tried=60)], RULE)
    assert none.verdict == "none"
    assert none.leader is None
    assert none.sentence == (
        "No clear winner: no configuration qualifies. a comes closest to being the fastest. Not decided: end-to-end "
        "success 58/60 [89–99] %, and 90 % lies inside. 18 more trials at this rate would decide it. The upper bound "
        "of its p95 is open with 60 answers: it closes with 12 more trials."
    )


def test_without_anything_measured_straight_passes_are_named() -> None:
    nothing = choose_config([], DecisionRule("cheapest", 95))
    assert nothing.sentence.endswith("73 passes without a failure are needed for 95 %.")


def test_an_undecided_one_that_would_be_faster_is_named() -> None:
    found = choose_config([measured("sure", 2000), measured("quick", 100, passed=93)], RULE)
    assert found.verdict == "alone"
    assert "quick would be faster and is not decided yet" in found.sentence


def test_cheapest_goes_by_the_interval_of_dollars_per_success() -> None:
    cheap, dear = IntervalEstimate(0.01, 0.009, 0.011), IntervalEstimate(0.02, 0.018, 0.022)
    found = choose_config([measured("dear", 1, cost=dear), measured("cheap", 1, cost=cheap)], DecisionRule("cheapest"))
    assert (found.verdict, found.leader and found.leader.measured.key) == ("clear", "cheap")


def test_the_front_keeps_whom_nobody_beats() -> None:
    assert find_pareto_front({"a": (1.0, 3.0), "b": (2.0, 2.0), "c": (2.0, 3.0), "d": (1.0, 3.0)}) == {"a", "b", "d"}


def test_only_those_that_meet_the_rule_stand_on_the_front() -> None:
    refused, undecided = measured("refused", 10, passed=20), measured("undecided", 20, passed=93)
    assert choose_config([refused, undecided, measured("sure", 2000)], RULE).front == {"sure"}
    assert not choose_config([refused, undecided], RULE).front
    by_hand = replace(measured("added to", 900), added_manually=1)
    assert choose_config([refused, by_hand], RULE).front == {"added to"}


def test_the_interval_of_dollars_per_success_covers_as_it_says() -> None:
    """Costs and passes that go together, 400 simulated runs of 200 trials: 95 % within three Monte-Carlo errors."""
    chance = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        passed = chance.random(200) < 0.9
        costs = chance.lognormal(-4, 0.5, 200) * np.where(passed, 1.0, 2.0)
        found = compute_cost_ratio(
            costs.sum(), (costs**2).sum(), passed_cost_sum=costs[passed].sum(), passed=int(passed.sum()), tried=200
        )
        truth = np.exp(-4 + 0.125) * (0.9 + 0.1 * 2) / 0.9
        covered += bool(found and found.low <= truth <= found.high)
    assert covered / 400 == pytest.approx(0.95, abs=3 * (0.95 * 0.05 / 400) ** 0.5)


def test_cost_ratio_is_unknown_without_a_pass_and_zero_unpaid() -> None:
    assert compute_cost_ratio(1.0, 1.0, passed_cost_sum=0.0, passed=0, tried=4) is None
    assert compute_cost_ratio(0.0, 0.0, passed_cost_sum=0.0, passed=4, tried=4) == IntervalEstimate(0, 0, 0)


def test_widths_shrink_with_the_root_of_the_number() -> None:
    assert count_trials_to_separate(IntervalEstimate(10, 8, 12), IntervalEstimate(11, 9, 13), 100) == 1500
    assert count_trials_to_separate(IntervalEstimate(10, 8, 12), IntervalEstimate(10, 8, 12), 100) is None
