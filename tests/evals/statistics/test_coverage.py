"""Tests of the coverage of intervals: a small, seeded part of what `python -m benchmarks.coverage` measures."""

from benchmarks.coverage import (
    measure_coverages,
    measure_difference_coverages,
    measure_false_differences,
    measure_family_coverages,
    measure_pair_coverages,
)


def test_intervals_cover_persona_rates_as_often_as_stated() -> None:
    measured = [
        *measure_coverages(runs=100),
        *measure_difference_coverages(runs=100),
        *measure_pair_coverages(runs=100),
    ]
    assert [str(coverage) for coverage in measured if not coverage.holds] == []


def test_differences_of_equal_personas_are_significant_at_most_as_stated() -> None:
    assert [str(coverage) for coverage in measure_false_differences(comparisons=100) if not coverage.holds] == []


def test_simultaneous_intervals_of_personas_cover_together() -> None:
    assert [str(coverage) for coverage in measure_family_coverages(runs=100) if not coverage.holds] == []
