"""Tests of coverage on a small, seeded sample of what `python -m benchmarks.coverage` measures."""

from benchmarks.coverage import (
    measure_coverages,
    measure_difference_coverages,
    measure_false_differences,
    measure_family_coverages,
    measure_pair_coverages,
)


def test_intervals_cover_persona_rates_as_often_as_exact_coverage() -> None:
    measured = [
        *measure_coverages(runs=100),
        *measure_difference_coverages(runs=100),
        *measure_pair_coverages(runs=100),
    ]
    assert [str(line) for line in measured if not line.holds] == []


def test_equal_personas_are_called_different_at_most_as_often_as_stated() -> None:
    assert [str(line) for line in measure_false_differences(comparisons=100) if not line.holds] == []


def test_simultaneous_intervals_of_personas_hold_all_together() -> None:
    assert [str(line) for line in measure_family_coverages(runs=100) if not line.holds] == []
