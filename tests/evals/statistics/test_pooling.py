"""Tests of a rate over several scenarios."""

import math

import pytest

from toolbench.evals.statistics import compute_exact_interval, compute_wilson_interval
from toolbench.evals.statistics.intervals import ScenarioSample, StoppingDesign
from toolbench.evals.statistics.pooling import (
    PooledRate,
    count_trials_per_scenario,
    list_sets_to_enlarge,
    pool_samples,
)
from toolbench.evals.statistics.sequential import compute_anytime_interval

EASY, HARD = ScenarioSample(99, 100), ScenarioSample(5, 10)


def test_pool_samples_equal_trials_give_wilson_interval_of_the_sum() -> None:
    pooled = pool_samples([ScenarioSample(9, 10), ScenarioSample(10, 10)])
    assert (pooled.low, pooled.high, pooled.method) == (*compute_wilson_interval(19, 20), "Wilson")
    assert pool_samples([ScenarioSample(40, 40)]).low == compute_wilson_interval(40, 40)[0]


def test_pool_samples_weighs_scenarios_equally() -> None:
    pooled = pool_samples([EASY, HARD])
    assert pooled.share == pytest.approx((0.99 + 0.5) / 2)
    assert pooled.high < 104 / 110
    assert pooled.n == pytest.approx(4 / (1 / 100 + 1 / 10))


def test_pool_samples_of_all_or_no_passes_reaches_1_or_0() -> None:
    assert pool_samples([ScenarioSample(100, 100), ScenarioSample(10, 10)]).high == 1
    assert pool_samples([ScenarioSample(0, 100), ScenarioSample(0, 10)]).low == 0
    assert (pool_samples([]).low, pool_samples([ScenarioSample(0, 0)]).high) == (0, 1)


def test_pool_samples_clustered_trials_have_the_exact_interval() -> None:
    pooled = pool_samples([ScenarioSample(9, 10, clustered=True)])
    assert (pooled.low, pooled.high, pooled.method) == (*compute_exact_interval(9, 10), "exact")


def test_pool_samples_one_sequential_scenario_is_anytime_valid() -> None:
    sequential = ScenarioSample(36, 40, StoppingDesign(0.05))
    assert (pool_samples([sequential]).low, pool_samples([sequential]).high) == compute_anytime_interval(36, 40, 0.05)
    mixed = pool_samples([sequential, ScenarioSample(36, 40)])
    assert mixed.error == 0.05
    assert mixed.low == pytest.approx(compute_anytime_interval(36, 40, 0.025)[0])


def test_pool_samples_without_trials_is_0_to_1() -> None:
    assert pool_samples([]) == pool_samples([ScenarioSample(0, 0)]) == PooledRate(0.0, 0.0, 1.0, 0.0, 0.0)
    assert count_trials_per_scenario([], 0.9, ()) is None


@pytest.mark.parametrize("scenarios", range(1, 12))
def test_pool_samples_equal_trials_count_exactly_as_their_sum(scenarios: int) -> None:
    pooled = pool_samples([ScenarioSample(9, 10)] * scenarios)
    assert (pooled.k, pooled.n) == (9 * scenarios, 10 * scenarios)
    assert (pooled.low, pooled.high) == compute_wilson_interval(9 * scenarios, 10 * scenarios)


@pytest.mark.parametrize(
    ("parts", "target"),
    [
        ((ScenarioSample(38, 40),), 0.9),
        ((ScenarioSample(190, 200), ScenarioSample(19, 20)), 0.9),
        ((ScenarioSample(9, 10), ScenarioSample(0, 0)), 0.8),
        ((ScenarioSample(38, 40, StoppingDesign(0.05)),), 0.8),
        ((ScenarioSample(95, 100, clustered=True),), 0.93),
    ],
)
def test_count_trials_per_scenario_is_the_least_that_reaches_target(
    parts: tuple[ScenarioSample, ...], target: float
) -> None:
    def compute_low(more: int) -> float:
        return pool_samples([_enlarge(part, more) for part in parts]).low

    more = count_trials_per_scenario(parts, target, range(len(parts)))
    assert more
    assert compute_low(more - 1) < target <= compute_low(more)


def _enlarge(part: ScenarioSample, more: int) -> ScenarioSample:
    n = part.n + more
    k = n * part.k / part.n if part.n else n
    return ScenarioSample(k if part.stopping.error is None else math.floor(k), n, part.stopping, part.clustered)


def test_count_trials_per_scenario_is_0_if_target_is_reached() -> None:
    assert count_trials_per_scenario([ScenarioSample(40, 40)], 0.8, (0,)) == 0
    assert count_trials_per_scenario([ScenarioSample(40, 40), ScenarioSample(40, 40)], 0.5, (0, 1)) == 0


def test_count_trials_per_scenario_is_not_below_the_given_number() -> None:
    assert count_trials_per_scenario([ScenarioSample(20, 20)], 0.9, (0,), at_least=0) == 15
    assert count_trials_per_scenario([ScenarioSample(20, 20)], 0.9, (0,), at_least=14) == 15
    assert count_trials_per_scenario([ScenarioSample(20, 20)], 0.9, (0,), at_least=16) == 16


def test_count_trials_per_scenario_is_none_if_target_is_out_of_reach() -> None:
    assert count_trials_per_scenario([], 0.9, ()) is None
    assert count_trials_per_scenario([ScenarioSample(36, 40)], 0.9, (0,)) is None
    assert count_trials_per_scenario([ScenarioSample(900_001, 1_000_000)], 0.9, (0,)) is None


def test_list_sets_to_enlarge_begins_with_the_smallest_samples() -> None:
    assert list_sets_to_enlarge([ScenarioSample(5, 5), ScenarioSample(3, 3)]) == ((1,), (0, 1))
    assert list_sets_to_enlarge([ScenarioSample(5, 5), ScenarioSample(5, 5)]) == ((0, 1),)
