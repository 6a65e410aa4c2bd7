"""One place decides which interval a count gets."""

from toolbench.evals.statistics import wilson
from toolbench.evals.statistics.intervals import FIXED, Part, Stopping, interval, together
from toolbench.evals.statistics.sequential import always_valid, always_valid_mean


def test_the_way_trials_ended_decides_the_interval() -> None:
    assert interval(9, 10) == wilson(9, 10)
    assert interval(9, 10, Stopping(cells=4)) == wilson(9, 10)
    assert interval(9, 10, Stopping(0.05)) == always_valid(9, 10, 0.05)
    assert interval(9, 10, Stopping(0.05, 2)) == always_valid_mean(9, 10, 0.05)


def test_counts_of_which_one_went_on_until_decided_get_the_always_valid_one_with_the_least_error() -> None:
    assert together([FIXED, Stopping(0.1), Stopping(0.05, 3)]) == Stopping(0.05, 5)
    assert together([FIXED, FIXED]).error is None


def test_a_part_is_of_independent_trials_unless_it_says_otherwise() -> None:
    assert Part(9, 10) == Part(9, 10, FIXED, clustered=False) != Part(9, 10, clustered=True)
