"""A rate over several scenarios."""

import pytest

from toolbench.evals.statistics import clopper_pearson, wilson
from toolbench.evals.statistics.intervals import Part, Stopping
from toolbench.evals.statistics.pooling import more_to_clear, pool
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


@pytest.mark.parametrize("parts", [(Part(38, 40),), (Part(190, 200), Part(19, 20)), (Part(38, 40, Stopping(0.05)),)])
def test_so_many_more_trials_at_the_shares_seen_would_clear(parts: tuple[Part, ...]) -> None:
    tried = sum(part.n for part in parts)
    more = more_to_clear(parts, 0.9, tried=tried)
    assert more
    times = (tried + more) / tried
    grown = [Part(round(times * part.k), round(times * part.n), part.stopping) for part in parts]
    assert pool(grown).low == pytest.approx(0.9, abs=0.02)
    assert more_to_clear(parts, 0.96, tried=tried) is None
