"""Tests of quantiles and their distribution-free bounds, and of the case study's percentile."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from toolbench.evals import statistics as stats
from toolbench.evals.statistics.quantiles import (
    Quantile,
    compute_quantile_ranks,
    count_more_answers_for_bounds,
    count_more_answers_for_limit,
)

QS = (0.5, 0.95, 0.99)
SIZES = (1, 2, 5, 6, 40, 71, 72, 73, 367, 368, 1_000, 20_000)
times = st.lists(st.floats(0, 1e9, width=32), min_size=1, max_size=200)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("q", QS)
def test_compute_quantile_ranks_cover_95_percent_exactly(n: int, q: float) -> None:
    """The number of values up to the true quantile is binomial: each bound misses it with 2.5 % at most, and the next
    order statistic inside would miss it more often."""
    _, low, high = compute_quantile_ranks(q, n)
    below = reference.binom(n, q).cdf

    assert low is None or below(low - 1) <= 0.025
    assert below(low or 0) > 0.025
    assert high is None or 1 - below(high - 1) <= 0.025
    assert 1 - below((n + 1 if high is None else high) - 2) > 0.025


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("percent", [1, 7, 50, 95, 99])
def test_compute_quantile_ranks_value_is_the_exact_ceiling(n: int, percent: int) -> None:
    value, _, _ = compute_quantile_ranks(percent / 100, n)

    assert value == max(1, math.ceil(Fraction(percent * n, 100)))


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("n", [1, 2, 5, 6, 59, 60, 61, 71, 72, 500])
def test_compute_quantile_bounds_are_those_of_scipy(n: int, q: float) -> None:
    values = [float(1 + number * number % 97) for number in range(n)]
    found = stats.compute_quantile(values, q)
    interval: Any = reference.quantile_test(values, q=found.value, p=q).confidence_interval(0.95)
    ends = [math.nan if end is None else end for end in (found.low, found.high)]
    assert ends == pytest.approx([interval.low, interval.high], nan_ok=True)
    assert found.value == pytest.approx(float(np.quantile(values, q, method="inverted_cdf")))


@given(values=times, q=st.sampled_from(QS))
def test_compute_quantile_is_a_value_between_its_bounds(values: list[float], q: float) -> None:
    found = stats.compute_quantile(values, q)

    assert {found.value, found.low, found.high} <= {*values, None}
    assert found.low is None or found.low <= found.value
    assert found.high is None or found.value <= found.high
    assert sum(value <= found.value for value in values) >= q * len(values) - 1e-9
    assert found == stats.compute_quantile(values[::-1], q)
    assert (found.n, found.q) == (len(values), q)


@given(values=times, q=st.sampled_from(QS), factor=st.sampled_from([0.25, 2.0, 1024.0]))
def test_compute_quantile_scales_with_its_values(values: list[float], q: float, factor: float) -> None:
    found, scaled = stats.compute_quantile(values, q), stats.compute_quantile([factor * value for value in values], q)

    assert scaled.value == factor * found.value
    assert [scaled.low, scaled.high] == [end if end is None else factor * end for end in (found.low, found.high)]


@pytest.mark.parametrize(("q", "minimum"), [(0.5, 6), (0.95, 72), (0.99, 368)])
def test_compute_quantile_upper_bound_begins_at_a_known_number(q: float, minimum: int) -> None:
    few, enough = ([float(number) for number in range(n)] for n in (minimum - 1, minimum))

    assert stats.compute_quantile(few, q).high is None
    assert stats.compute_quantile(enough, q).high == enough[-1]


def test_compute_quantile_p50_below_6_is_open_on_both_sides() -> None:
    assert stats.compute_quantile([5.0], 0.5) == Quantile(5.0, None, None, 1, 0.5)
    assert stats.compute_quantile([3.0, 1.0, 2.0, 5.0, 4.0], 0.5) == Quantile(3.0, None, None, 5, 0.5)
    assert stats.compute_quantile([3.0, 1.0, 2.0, 5.0, 4.0, 6.0], 0.5) == Quantile(3.0, 1.0, 6.0, 6, 0.5)


def test_compute_quantile_of_nothing_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        stats.compute_quantile([], 0.5)


@given(q=st.sampled_from([0.05, 0.25, *QS]), n=st.integers(1, 500))
def test_count_more_answers_for_bounds_is_the_least_number(q: float, n: int) -> None:
    more = count_more_answers_for_bounds(q, n)

    assert None not in compute_quantile_ranks(q, n + more)
    assert more == 0 or None in compute_quantile_ranks(q, n + more - 1)


@pytest.mark.parametrize(("q", "n", "more"), [(0.5, 0, 6), (0.95, 40, 32), (0.95, 72, 0), (0.99, 100, 268)])
def test_count_more_answers_for_bounds_of_known_counts(q: float, n: int, more: int) -> None:
    assert count_more_answers_for_bounds(q, n) == more


@pytest.mark.parametrize(("at_least", "step"), [(0, 1), (0, 7), (375, 1), (390, 3)])
@pytest.mark.parametrize(("n", "beyond"), [(72, 0), (102, 1), (102, 3), (100, 2), (100, 3), (100, 4), (10, 0)])
def test_count_more_answers_for_limit_is_the_smallest_number(n: int, beyond: int, at_least: int, step: int) -> None:
    def is_within(more: int) -> bool:
        total = n + more
        high = compute_quantile_ranks(0.95, total)[2]
        return high is not None and high <= total - math.ceil(beyond * total / n)

    more = count_more_answers_for_limit([1.0] * (n - beyond) + [3.0] * beyond, 0.95, 2.0, at_least=at_least, step=step)
    assert more == next(filter(is_within, range(at_least, 10_000, step)))


@pytest.mark.parametrize("beyond", [5, 6, 50, 100])
def test_count_more_answers_for_limit_is_none_if_the_quantile_is_beyond(beyond: int) -> None:
    assert count_more_answers_for_limit([1.0] * (100 - beyond) + [3.0] * beyond, 0.95, 2.0) is None


@pytest.mark.parametrize(
    ("count", "q", "index"),
    [
        (1, 95, 0), (4, 95, 3), (10, 95, 9), (20, 95, 19), (21, 95, 19), (40, 95, 38), (50, 95, 47), (100, 95, 95),
        (2, 50, 1), (10, 50, 5), (50, 50, 25),
    ],
)  # fmt: skip
def test_compute_nearest_rank_percentile_takes_the_published_index(count: int, q: int, index: int) -> None:
    assert stats.compute_nearest_rank_percentile(list(range(count, 0, -1)), q) == index + 1


def test_compute_nearest_rank_percentile_of_nothing_is_0() -> None:
    assert stats.compute_nearest_rank_percentile([], 95) == 0.0


def test_compute_quantile_0_is_the_least_value() -> None:
    assert stats.compute_quantile([3.0, 1.0, 2.0], 0).value == 1.0


@pytest.mark.parametrize(("low", "high", "is_open"), [(1.0, 3.0, False), (None, 3.0, True), (1.0, None, True)])
def test_quantile_is_open_if_a_bound_is_missing(low: float | None, high: float | None, is_open: bool) -> None:
    assert Quantile(2.0, low, high, 9, 0.5).is_open is is_open
