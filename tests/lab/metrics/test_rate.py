"""A rate is k, n and an interval together, and claims no more than it may."""

from math import ceil

import pytest

from toolbench.lab.metrics.rate import rate_of, trials_to_decide


def test_forty_of_forty_has_the_interval_of_wilson() -> None:
    rate = rate_of(40, 40, target=90)
    assert (rate.percent, rate.low_percent, rate.high_percent) == ("100", "91", "100")


@pytest.mark.parametrize(
    ("k", "n", "against"),
    [(40, 40, "clears"), (36, 40, "open"), (27, 40, "below"), (0, 0, "open"), (10, 10, "open")],
)
def test_only_the_whole_interval_decides_against_the_target(k: int, n: int, against: str) -> None:
    assert rate_of(k, n, target=90).against == against


def test_rounding_never_claims_all_or_nothing() -> None:
    assert rate_of(999, 1000).percent == "99.9"
    assert rate_of(1, 1000).percent == "0.1"
    assert rate_of(1002, 1120).percent == "89"
    assert rate_of(9999, 10_000).percent == ">99.9"
    assert rate_of(1, 10_000).percent == "<0.1"


def test_halves_are_rounded_up() -> None:
    assert (rate_of(37, 40).percent, rate_of(33, 40).percent, rate_of(1, 40).percent) == ("93", "83", "3")


def test_a_withheld_interval_decides_nothing_and_promises_nothing() -> None:
    assert rate_of(10, 10, target=50, distinct=1, withheld=True).against == "open"
    assert trials_to_decide(rate_of(10, 10, target=50, distinct=1, withheld=True)) is None


def test_more_trials_at_the_same_share_would_decide() -> None:
    more = trials_to_decide(rate_of(38, 40, target=90))
    assert more is not None
    assert rate_of(ceil(0.95 * (40 + more)), 40 + more, target=90).against == "clears"
    below = trials_to_decide(rate_of(34, 40, target=90))
    assert below is not None
    assert rate_of(int(0.85 * (40 + below)), 40 + below, target=90).against == "below"


@pytest.mark.parametrize(("k", "n"), [(40, 40), (36, 40), (0, 0)])
def test_nothing_is_promised_where_it_is_decided_or_stands_on_the_target(k: int, n: int) -> None:
    assert trials_to_decide(rate_of(k, n, target=90)) is None
