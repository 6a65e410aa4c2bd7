"""Quantiles are scipy's, their differences come with an interval, and the case study's percentiles are its own."""

import math
from typing import Any

import pytest
from scipy import stats as reference

from toolbench.evals import statistics as stats
from toolbench.evals.statistics.quantiles import P95_LEAST, quantile_shift


@pytest.mark.parametrize("n", [2, 5, 6, 59, 60, 61, 500])
@pytest.mark.parametrize("q", [0.5, 0.95])
def test_quantiles_and_their_intervals_are_those_of_scipy(n: int, q: float) -> None:
    values = [float(1 + place * place % 97) for place in range(n)]
    found = stats.quantile(values, q)
    interval: Any = reference.quantile_test(values, q=found.value, p=q).confidence_interval(0.95)
    ends = [math.nan if end is None else end for end in (found.low, found.high)]
    assert ends == pytest.approx([interval.low, interval.high], nan_ok=True)
    assert found.value == pytest.approx(float(reference.quantile(values, q)))


def test_an_interval_end_that_needs_more_values_is_left_open() -> None:
    assert stats.quantile([5.0], 0.5) == stats.Quantile(5.0, None, None)
    wide = stats.quantile([float(n) for n in range(1, 101)], 0.5)
    assert (wide.low, wide.value, wide.high) == (40.0, 50.5, 61.0)


@pytest.mark.parametrize(
    ("count", "q", "index"),
    [
        (1, 95, 0), (4, 95, 3), (10, 95, 9), (20, 95, 19), (21, 95, 19), (40, 95, 38), (50, 95, 47), (100, 95, 95),
        (2, 50, 1), (10, 50, 5), (50, 50, 25),
    ],
)  # fmt: skip
def test_parity_percentiles_take_the_published_index(count: int, q: int, index: int) -> None:
    assert stats.parity_percentile(list(range(count, 0, -1)), q) == index + 1


def test_parity_percentile_of_nothing_is_0() -> None:
    assert stats.parity_percentile([], 95) == 0.0


def test_a_shift_of_the_median_lies_in_its_interval_and_is_the_same_every_time() -> None:
    first = [float(100 + place * 7 % 50) for place in range(40)]
    second = [time + 30 for time in first]
    found = quantile_shift(first, second, 0.5)
    assert found is not None
    assert found.value == pytest.approx(30)
    assert found.low < 30 < found.high
    assert found == quantile_shift(first, second, 0.5)


def test_a_p95_is_compared_only_from_60_values_on() -> None:
    assert quantile_shift([1.0] * P95_LEAST, [1.0] * (P95_LEAST - 1), 0.95) is None
    assert quantile_shift([1.0], [2.0, 3.0], 0.5) is None
