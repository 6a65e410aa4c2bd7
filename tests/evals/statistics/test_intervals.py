"""Tests of the choice of the interval for a count."""

from toolbench.evals.statistics import compute_wilson_interval
from toolbench.evals.statistics.intervals import (
    FIXED_STOPPING,
    ScenarioSample,
    StoppingDesign,
    combine_stoppings,
    compute_interval,
)
from toolbench.evals.statistics.sequential import compute_anytime_interval, compute_anytime_mean_interval


def test_compute_interval_follows_the_stopping_design() -> None:
    assert compute_interval(9, 10) == compute_wilson_interval(9, 10)
    assert compute_interval(9, 10, StoppingDesign(cells=4)) == compute_wilson_interval(9, 10)
    assert compute_interval(9, 10, StoppingDesign(0.05)) == compute_anytime_interval(9, 10, 0.05)
    assert compute_interval(9, 10, StoppingDesign(0.05, 2)) == compute_anytime_mean_interval(9, 10, 0.05)


def test_combine_stoppings_uses_smallest_sequential_error() -> None:
    assert combine_stoppings([FIXED_STOPPING, StoppingDesign(0.1), StoppingDesign(0.05, 3)]) == StoppingDesign(0.05, 5)
    assert combine_stoppings([FIXED_STOPPING, FIXED_STOPPING]).error is None


def test_scenario_sample_is_of_independent_trials_by_default() -> None:
    assert (
        ScenarioSample(9, 10)
        == ScenarioSample(9, 10, FIXED_STOPPING, clustered=False)
        != ScenarioSample(9, 10, clustered=True)
    )
