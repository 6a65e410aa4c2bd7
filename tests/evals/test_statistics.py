"""Golden numbers of intervals, of the trials that decide, and of both kinds of percentile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbench.evals import statistics as stats


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(36, 40, 0.7695, 0.9604), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0), (73, 73, 0.95, 1.0)],
)
def test_wilson_intervals_are_those_of_the_textbook(k: int, n: int, low: float, high: float) -> None:
    found = stats.rate(k, n)
    assert found.low == pytest.approx(low, abs=1e-4)
    assert found.high == pytest.approx(high, abs=1e-4)


def test_nothing_tried_has_no_rate() -> None:
    assert stats.rate(0, 0) == stats.Rate(0, 0, None, None, None)
    assert not stats.rate(0, 0).clears(0.5)
    assert not stats.rate(0, 0).misses(0.5)


@pytest.mark.parametrize(("k", "n"), [(2, 1), (-1, 3)])
def test_a_count_that_cannot_be_is_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="is no rate"):
        stats.rate(k, n)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_rate_lies_inside_its_interval(counts: tuple[int, int]) -> None:
    found = stats.rate(*counts)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1


@pytest.mark.parametrize(("target", "passes"), [(0.95, 73), (0.9, 35), (0.5, 4)])
def test_straight_passes_needed_lift_the_lower_bound_to_the_target(target: float, passes: int) -> None:
    assert stats.passes_needed(target) == passes
    assert stats.rate(passes, passes).clears(target)
    assert not stats.rate(passes - 1, passes - 1).clears(target)


def test_more_trials_at_the_rate_seen_would_clear_the_target() -> None:
    more = stats.more_trials_to_clear(38, 40, 0.9)
    assert more is not None
    whole = 40 + more
    assert stats.rate(round(0.95 * whole) + 1, whole).clears(0.9)
    assert not stats.rate(round(0.95 * (whole - 20)), whole - 20).clears(0.9)


def test_a_rate_at_or_under_the_target_never_clears_it() -> None:
    assert stats.more_trials_to_clear(36, 40, 0.9) is None
    assert stats.more_trials_to_clear(0, 0, 0.9) is None


def test_a_rate_that_clears_already_needs_no_more() -> None:
    assert stats.more_trials_to_clear(100, 100, 0.9) == 0


@pytest.mark.parametrize("target", [0, 1, 95])
def test_a_target_is_a_fraction_between_0_and_1(target: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        stats.passes_needed(target)


def test_a_winner_is_clear_only_where_intervals_do_not_meet() -> None:
    assert stats.clear_winner([stats.rate(40, 40), stats.rate(20, 40)]) == 0
    assert stats.clear_winner([stats.rate(36, 40), stats.rate(39, 40)]) is None
    assert stats.clear_winner([stats.rate(0, 0), stats.rate(5, 5)]) == 1
    assert stats.clear_winner([stats.rate(0, 0)]) is None


def test_close_rates_need_many_trials_to_tell_apart() -> None:
    assert stats.trials_to_tell_apart(0.9, 0.9) is None
    assert stats.trials_to_tell_apart(0.5, 0.6) == 388
    close, far = stats.trials_to_tell_apart(0.9, 0.93), stats.trials_to_tell_apart(0.5, 0.93)
    assert close is not None
    assert far is not None
    assert close > far


def test_repeats_that_need_not_be_independent_show_no_interval() -> None:
    assert stats.why_withheld(10, 1, deterministic=True) == "10 repeats, 1 distinct"
    assert stats.why_withheld(10, 10, deterministic=True) == ""
    assert stats.why_withheld(10, 1, deterministic=False) == ""


@pytest.mark.parametrize(
    ("count", "q", "index"),
    [
        (1, 95, 0), (4, 95, 3), (10, 95, 9), (20, 95, 19), (21, 95, 19), (40, 95, 38), (50, 95, 47), (100, 95, 95),
        (2, 50, 1), (10, 50, 5), (50, 50, 25),
    ],
)  # fmt: skip
def test_parity_percentiles_take_the_published_index(count: int, q: int, index: int) -> None:
    assert stats.parity_index(count, q) == index
    assert stats.parity_percentile(list(range(count, 0, -1)), q) == index + 1


def test_parity_percentile_of_nothing_is_0() -> None:
    assert stats.parity_percentile([], 95) == 0.0


def test_p95_is_withheld_under_60_values() -> None:
    values = [float(value) for value in range(1, 61)]
    assert stats.percentile(values[:59], 95) is None
    assert stats.percentile(values, 95) == pytest.approx(57.05)
    assert stats.percentile(values, 50) == pytest.approx(30.5)
    assert stats.percentile([7.0], 50) == 7.0
    assert stats.percentile([], 50) is None
