import numpy as np
import pytest
from scipy.stats import binom

from toolbench.evals.statistics.drift import RunSample, compute_imbalance, compute_lower_bound, find_drift


def build_sample(passed: int, total: int = 25) -> RunSample:
    return RunSample(passed, (("a", total),))


def test_find_drift_unchanged_success_is_none() -> None:
    assert find_drift((build_sample(24),), tuple(build_sample(24) for _ in range(60)), 0.05) is None


def test_find_drift_without_baseline_is_none() -> None:
    assert find_drift((), (build_sample(0),), 0.05) is None
    assert find_drift((build_sample(0, 0),), (build_sample(0),), 0.05) is None


def test_find_drift_collapse_is_detected_at_its_first_run() -> None:
    since = (*[build_sample(25)] * 2, build_sample(0), build_sample(0))
    found = find_drift((build_sample(25),), since, 0.05 / 12)
    assert found is not None
    assert (found.detected_index, found.start_index, round(found.points)) == (2, 2, -100)


def test_find_drift_slow_drop_names_the_run_where_it_began() -> None:
    since = (*[build_sample(24)] * 5, *[build_sample(17)] * 8)
    found = find_drift((build_sample(24),) * 4, since, 0.05 / 12)
    assert found is not None
    assert found.start_index == 5
    assert found.detected_index > 5
    assert round(found.points) == -28


def test_find_drift_rise_is_drift() -> None:
    found = find_drift((build_sample(10),), (*[build_sample(10)] * 2, *[build_sample(25)] * 3), 0.05)
    assert found is not None
    assert found.points > 0


def test_find_drift_smaller_error_needs_more_evidence() -> None:
    baseline, since = (build_sample(24),), (build_sample(9),)
    assert find_drift(baseline, since, 0.3) is not None
    assert find_drift(baseline, since, 0.3 / 10_000) is None


def test_find_drift_missing_scenarios_are_no_drift() -> None:
    """The easy scenario has no more answers, for instance after timeouts: success falls although no rate changed."""
    whole, rest = RunSample(30, (("easy", 20), ("hard", 20))), RunSample(10, (("hard", 20),))
    assert find_drift((whole, whole), (rest,) * 8, 0.05) is None
    assert find_drift((build_sample(60, 80),), (build_sample(5, 20),) * 8, 0.05) is not None


def test_find_drift_new_version_of_a_scenario_is_no_drift() -> None:
    assert find_drift((RunSample(25, (("a v1", 25),)),), (RunSample(0, (("a v2", 25),)),) * 3, 0.05) is None


def test_find_drift_drop_is_found_with_a_few_missing_answers() -> None:
    before, after = RunSample(39, (("a", 20), ("b", 20))), RunSample(20, (("a", 19), ("b", 20)))
    assert find_drift((before, before), (after, after), 0.05 / 12) is not None


def test_compute_imbalance_bounds_the_difference_of_mean_rates() -> None:
    baseline, run = [RunSample(0, (("a", 10), ("b", 10)))], RunSample(0, (("a", 4), ("b", 10)))
    widest = compute_imbalance(baseline, run)
    for a, b in np.random.default_rng(1).uniform(0, 1, (300, 2)):
        assert abs((a + b) / 2 - (4 * a + 10 * b) / 14) <= widest
    assert compute_imbalance(baseline, RunSample(0, ())) == compute_imbalance([], run) == 1.0


@pytest.mark.parametrize(("passed", "total"), [(24, 25), (25, 25), (1, 3), (60, 75)])
def test_compute_lower_bound_is_that_of_clopper_and_pearson(passed: int, total: int) -> None:
    bound = compute_lower_bound(passed, total, 0.01)
    assert binom.sf(passed - 1, total, bound) == pytest.approx(0.01)
    assert compute_lower_bound(0, total, 0.01) == 0.0


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
def test_find_drift_false_alarms_stay_below_the_stated_error(rate: float) -> None:
    """Simulate 300 schedules of 40 runs without a change; `python -m benchmarks.drift` simulates more."""
    random = np.random.default_rng(5)
    alarms = 0
    for passed in random.binomial(20, rate, (300, 43)):
        runs = tuple(build_sample(int(count), 20) for count in passed)
        alarms += find_drift(runs[:3], runs[3:], 0.05) is not None
    assert alarms <= 0.05 * 300
