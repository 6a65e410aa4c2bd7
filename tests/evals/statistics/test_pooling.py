"""A rate over several scenarios."""

import math

import pytest

from toolbench.evals.statistics import clopper_pearson, wilson
from toolbench.evals.statistics.intervals import Part, Stopping
from toolbench.evals.statistics.pooling import Pooled, more_each, pool
from toolbench.evals.statistics.sequential import always_valid

EASY, HARD = Part(99, 100), Part(5, 10)


def test_equally_many_trials_of_every_scenario_have_wilsons_interval_of_all() -> None:
    pooled = pool([Part(9, 10), Part(10, 10)])
    assert (pooled.low, pooled.high, pooled.method) == (*wilson(19, 20), "Wilson")
    assert pool([Part(40, 40)]).low == wilson(40, 40)[0]


def test_nobody_looks_better_for_having_been_tried_more_often_on_what_is_easy() -> None:
    pooled = pool([EASY, HARD])
    assert pooled.share == pytest.approx((0.99 + 0.5) / 2)
    assert pooled.high < 104 / 110
    assert pooled.n == pytest.approx(4 / (1 / 100 + 1 / 10))


def test_all_and_none_stay_all_and_none() -> None:
    assert pool([Part(100, 100), Part(10, 10)]).high == 1
    assert pool([Part(0, 100), Part(0, 10)]).low == 0
    assert (pool([]).low, pool([Part(0, 0)]).high) == (0, 1)


def test_trials_that_hang_together_have_the_exact_interval() -> None:
    pooled = pool([Part(9, 10, clustered=True)])
    assert (pooled.low, pooled.high, pooled.method) == (*clopper_pearson(9, 10), "exact")


def test_one_scenario_that_went_on_until_decided_makes_the_whole_always_valid() -> None:
    until = Part(36, 40, Stopping(0.05))
    assert (pool([until]).low, pool([until]).high) == always_valid(36, 40, 0.05)
    mixed = pool([until, Part(36, 40)])
    assert mixed.error == 0.05
    assert mixed.low == pytest.approx(always_valid(36, 40, 0.025)[0])


def test_nothing_tried_is_known_of_nothing() -> None:
    assert pool([]) == pool([Part(0, 0)]) == Pooled(0.0, 0.0, 1.0, 0.0, 0.0)
    assert more_each([], 0.9, ()) is None


@pytest.mark.parametrize("scenarios", range(1, 12))
def test_equally_many_trials_count_as_their_sum_to_the_last_digit(scenarios: int) -> None:
    pooled = pool([Part(9, 10)] * scenarios)
    assert (pooled.k, pooled.n) == (9 * scenarios, 10 * scenarios)
    assert (pooled.low, pooled.high) == wilson(9 * scenarios, 10 * scenarios)


@pytest.mark.parametrize(
    ("parts", "target"),
    [
        ((Part(38, 40),), 0.9),
        ((Part(190, 200), Part(19, 20)), 0.9),
        ((Part(9, 10), Part(0, 0)), 0.8),
        ((Part(38, 40, Stopping(0.05)),), 0.8),
        ((Part(95, 100, clustered=True),), 0.93),
    ],
)
def test_more_each_is_the_least_number_that_clears(parts: tuple[Part, ...], target: float) -> None:
    def low(more: int) -> float:
        return pool([_grown(part, more) for part in parts]).low

    more = more_each(parts, target, range(len(parts)))
    assert more
    assert low(more - 1) < target <= low(more)


def _grown(part: Part, more: int) -> Part:
    n = part.n + more
    k = n * part.k / part.n if part.n else n
    return Part(k if part.stopping.error is None else math.floor(k), n, part.stopping, part.clustered)


def test_more_each_is_0_where_the_bound_is_reached_already() -> None:
    assert more_each([Part(40, 40)], 0.8, (0,)) == 0
    assert more_each([Part(40, 40), Part(40, 40)], 0.5, (0, 1)) == 0


def test_more_each_of_what_never_clears_is_none() -> None:
    assert more_each([], 0.9, ()) is None
    assert more_each([Part(36, 40)], 0.9, (0,)) is None
    assert more_each([Part(900_001, 1_000_000)], 0.9, (0,)) is None
