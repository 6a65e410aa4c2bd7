"""A small, seeded sample of what `python -m benchmarks.coverage` measures."""

from benchmarks.coverage import (
    coverages,
    difference_coverages,
    false_differences,
    family_coverages,
    pair_coverages,
)


def test_intervals_cover_the_personas_true_rates_as_often_as_their_exact_coverage() -> None:
    measured = [*coverages(runs=100), *difference_coverages(runs=100), *pair_coverages(runs=100)]
    assert [str(line) for line in measured if not line.holds] == []


def test_equal_personas_are_called_different_at_most_as_often_as_stated() -> None:
    assert [str(line) for line in false_differences(comparisons=100) if not line.holds] == []


def test_simultaneous_intervals_of_personas_hold_all_together() -> None:
    assert [str(line) for line in family_coverages(runs=100) if not line.holds] == []
