"""Rates: k of n with an interval, rounding, and the trials needed to decide."""

from math import ceil

import pytest

from toolbench.lab.metrics.rate import build_rate, count_trials_to_decide


def test_build_rate_forty_of_forty_has_wilson_interval() -> None:
    rate = build_rate(40, 40, target=90)
    assert (rate.percent, rate.low_percent, rate.high_percent) == ("100", "91", "100")


@pytest.mark.parametrize(
    ("k", "n", "target_status"),
    [(40, 40, "clears"), (36, 40, "open"), (27, 40, "below"), (0, 0, "open"), (10, 10, "open")],
)
def test_build_rate_target_status_needs_whole_interval(k: int, n: int, target_status: str) -> None:
    assert build_rate(k, n, target=90).target_status == target_status


def test_build_rate_percent_rounds_to_neither_0_nor_100() -> None:
    assert build_rate(999, 1000).percent == "99.9"
    assert build_rate(1, 1000).percent == "0.1"
    assert build_rate(1002, 1120).percent == "89"
    assert build_rate(9999, 10_000).percent == ">99.9"
    assert build_rate(1, 10_000).percent == "<0.1"


def test_build_rate_percent_rounds_halves_up() -> None:
    assert (build_rate(37, 40).percent, build_rate(33, 40).percent, build_rate(1, 40).percent) == ("93", "83", "3")


def test_build_rate_with_withheld_interval_is_open() -> None:
    assert build_rate(10, 10, target=50, distinct=1, withheld=True).target_status == "open"
    assert count_trials_to_decide(build_rate(10, 10, target=50, distinct=1, withheld=True)) is None


def test_count_trials_to_decide_at_same_share_decides() -> None:
    more = count_trials_to_decide(build_rate(38, 40, target=90))
    assert more is not None
    assert build_rate(ceil(0.95 * (40 + more)), 40 + more, target=90).target_status == "clears"
    below = count_trials_to_decide(build_rate(34, 40, target=90))
    assert below is not None
    assert build_rate(int(0.85 * (40 + below)), 40 + below, target=90).target_status == "below"


@pytest.mark.parametrize(("k", "n"), [(40, 40), (36, 40), (0, 0)])
def test_count_trials_to_decide_if_decided_or_on_target_is_none(k: int, n: int) -> None:
    assert count_trials_to_decide(build_rate(k, n, target=90)) is None
