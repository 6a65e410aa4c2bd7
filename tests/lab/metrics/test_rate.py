"""A rate is k, n and an interval together, and claims no more than it may."""

from math import ceil

import pytest

from toolbench.lab.metrics.rate import build_rate, count_trials_to_decide


def test_forty_of_forty_has_the_interval_of_wilson() -> None:
    rate = build_rate(40, 40, target=90)
    assert (rate.percent, rate.low_percent, rate.high_percent) == ("100", "91", "100")


@pytest.mark.parametrize(
    ("k", "n", "against"),
    [(40, 40, "clears"), (36, 40, "open"), (27, 40, "below"), (0, 0, "open"), (10, 10, "open")],
)
def test_only_the_whole_interval_decides_against_the_target(k: int, n: int, against: str) -> None:
    assert build_rate(k, n, target=90).target_status == against


def test_rounding_never_claims_all_or_nothing() -> None:
    assert build_rate(999, 1000).percent == "99.9"
    assert build_rate(1, 1000).percent == "0.1"
    assert build_rate(1002, 1120).percent == "89"
    assert build_rate(9999, 10_000).percent == ">99.9"
    assert build_rate(1, 10_000).percent == "<0.1"


def test_halves_are_rounded_up() -> None:
    assert (build_rate(37, 40).percent, build_rate(33, 40).percent, build_rate(1, 40).percent) == ("93", "83", "3")


def test_a_withheld_interval_decides_nothing_and_promises_nothing() -> None:
    assert build_rate(10, 10, target=50, distinct=1, withheld=True).target_status == "open"
    assert count_trials_to_decide(build_rate(10, 10, target=50, distinct=1, withheld=True)) is None


def test_more_trials_at_the_same_share_would_decide() -> None:
    more = count_trials_to_decide(build_rate(38, 40, target=90))
    assert more is not None
    assert build_rate(ceil(0.95 * (40 + more)), 40 + more, target=90).target_status == "clears"
    below = count_trials_to_decide(build_rate(34, 40, target=90))
    assert below is not None
    assert build_rate(int(0.85 * (40 + below)), 40 + below, target=90).target_status == "below"


@pytest.mark.parametrize(("k", "n"), [(40, 40), (36, 40), (0, 0)])
def test_nothing_is_promised_where_it_is_decided_or_stands_on_the_target(k: int, n: int) -> None:
    assert count_trials_to_decide(build_rate(k, n, target=90)) is None
