"""Tests of differences of quantiles: coverage, open bounds, and simultaneous intervals."""

import numpy as np
import pytest

from toolbench.evals.statistics.differences import ALPHA
from toolbench.evals.statistics.quantile_differences import QuantileDifference, compute_quantile_difference
from toolbench.evals.statistics.quantiles import compute_quantile


def test_compute_quantile_difference_of_medians_is_in_its_interval() -> None:
    first = [float(100 + index * 7 % 50) for index in range(40)]
    second = [time + 30 for time in first]
    found = compute_quantile_difference(first, second, 0.5)
    assert found is not None
    assert found.value == pytest.approx(30)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 30 < found.high
    assert (found.first, found.second) == (compute_quantile(first, 0.5), compute_quantile(second, 0.5))
    assert found.is_significant == (found.low > 0)


def test_compute_quantile_difference_is_open_if_a_side_is_open() -> None:
    few, many = [float(time) for time in range(71)], [float(time) for time in range(200)]
    found = compute_quantile_difference(few, many, 0.95)
    assert found is not None
    assert (found.value, found.low) == (122.0, None)
    assert found.high is not None
    assert not found.is_significant


def test_compute_quantile_difference_without_values_on_a_side_is_none() -> None:
    assert compute_quantile_difference([], [2.0, 3.0], 0.5) is None
    assert compute_quantile_difference([1.0], [], 0.5) is None


def test_compute_quantile_difference_more_comparisons_widen_the_interval() -> None:
    first, second = [float(time) for time in range(300)], [float(time + 400) for time in range(300)]
    alone, adjusted = (compute_quantile_difference(first, second, 0.5, comparisons=many) for many in (1, 10))
    assert alone is not None
    assert adjusted is not None
    assert adjusted.low is not None
    assert alone.low is not None
    assert adjusted.high is not None
    assert alone.high is not None
    assert adjusted.low < alone.low < alone.high < adjusted.high
    assert adjusted.is_significant


@pytest.mark.parametrize("n", [20, 120])
def test_compute_quantile_difference_intervals_of_family_cover_together(n: int) -> None:
    """Simulate 500 seeded families of four: p50 and p95 of exponential times, twice."""
    random = np.random.default_rng(4)
    quantiles = (0.5, 0.95, 0.5, 0.95)
    missed = 0
    for _ in range(500):
        scales = random.choice([1.0, 2.0], size=(4, 2))
        for q, (first_scale, second_scale) in zip(quantiles, scales, strict=True):
            first, second = random.exponential(first_scale, n).tolist(), random.exponential(second_scale, n).tolist()
            found = compute_quantile_difference(first, second, q, comparisons=4)
            assert found is not None
            true_difference = (second_scale - first_scale) * -np.log(1 - q)
            low, high = found.low, found.high
            if (low is not None and low > true_difference) or (high is not None and high < true_difference):
                missed += 1
                break
    assert missed / 500 <= ALPHA


@pytest.mark.parametrize(
    ("low", "high", "significant"),
    [
        (0.5, 2.0, True), (0.5, None, True), (0.0, 2.0, False), (-0.5, 2.0, False), (None, 2.0, False),
        (-2.0, -0.5, True), (None, -0.5, True), (-2.0, 0.0, False), (-2.0, 0.5, False), (None, None, False),
    ],
)  # fmt: skip
def test_quantile_difference_is_significant_if_0_is_excluded(
    low: float | None, high: float | None, significant: bool
) -> None:
    quantile = compute_quantile([1.0], 0.5)
    assert QuantileDifference(1.0, low, high, quantile, quantile).is_significant is significant
