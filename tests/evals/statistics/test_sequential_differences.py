"""Tests of differences of sides with sequential stopping."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbench.evals.statistics.differences import ALPHA, Stratum, compute_difference
from toolbench.evals.statistics.intervals import ScenarioSample, StoppingDesign
from toolbench.evals.statistics.sequential_differences import compute_sequential_difference

SEQUENTIAL = StoppingDesign(0.05)


def build_pair(first: tuple[int, int], second: tuple[int, int]) -> tuple[ScenarioSample, ScenarioSample]:
    return ScenarioSample(*first, SEQUENTIAL), ScenarioSample(*second, SEQUENTIAL)


@pytest.mark.parametrize(("passed", "differs"), [(84, False), (95, True)])
def test_compute_sequential_difference_is_significant_if_0_is_excluded(passed: int, differs: bool) -> None:
    found = compute_sequential_difference([build_pair((70, 100), (passed, 100))])
    fixed = compute_difference([Stratum(70, 100, passed, 100)])
    assert found is not None
    assert fixed is not None
    assert (found.p <= 0.05) == (found.low > 0) == differs
    assert found.value == pytest.approx(fixed.value)
    assert found.low < fixed.low < fixed.high < found.high


counts = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda both: (min(both), max(1, *both)))


@given(st.lists(st.tuples(counts, counts), min_size=1, max_size=3), st.integers(1, 20))
def test_compute_sequential_difference_verdict_p_and_interval_agree(
    sides: list[tuple[tuple[int, int], tuple[int, int]]], comparisons: int
) -> None:
    alone = compute_sequential_difference([build_pair(*both) for both in sides])
    assert alone is not None
    found = alone.with_comparisons(comparisons)
    assert found.is_significant == (not found.low <= 0 <= found.high) == (found.p <= ALPHA)
    assert found.low <= alone.low <= alone.high <= found.high


def test_compute_sequential_difference_ignores_strata_of_one_side() -> None:
    alone = compute_sequential_difference([build_pair((7, 10), (9, 10))])
    assert compute_sequential_difference([build_pair((7, 10), (9, 10)), build_pair((0, 0), (5, 5))]) == alone
    assert compute_sequential_difference([build_pair((0, 0), (5, 5))]) is None


def test_compute_sequential_difference_of_equal_sides_rarely_differs() -> None:
    generator = random.Random(7)

    def ever_differs() -> bool:
        first = second = 0
        for n in range(5, 61, 5):
            first += sum(generator.random() < 0.7 for _ in range(5))
            second += sum(generator.random() < 0.7 for _ in range(5))
            found = compute_sequential_difference([build_pair((first, n), (second, n))])
            if found is not None and found.p <= 0.05:
                return True
        return False

    assert sum(ever_differs() for _ in range(60)) <= 4


@pytest.mark.parametrize("counts", [(5, 10), (1, 3), (40, 40)])
def test_compute_sequential_difference_of_equal_counts_has_p_1(counts: tuple[int, int]) -> None:
    found = compute_sequential_difference([(ScenarioSample(*counts), ScenarioSample(*counts))])
    assert found is not None
    assert found.test_p_value == 1.0
