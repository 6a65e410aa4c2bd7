"""Every metric names its denominator, and a figure that is not known is None, never 0."""

import pytest

from toolbench.lab.metrics import METRICS, cost_per_success, tokens_per_trial
from toolbench.lab.tallies import Tally, pooled

SEEN = Tally(
    cells=1, passed=6, failed=3, infra=1, deadline_failed=1, parity_passed=5, first_attempt_passed=4, calls=20,
    valid_calls=18, structured_answers=15, calling_answers=16, parse_error_turns=2, calling_turns=17,
    input_tokens=900, output_tokens=100, cost=0.6,
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "k", "n"),
    [
        ("given", 6, 8),
        ("delivered", 6, 10),
        ("first", 4, 8),
        ("parity", 5, 8),
        ("structured", 15, 16),
        ("schema", 18, 20),
        ("parse", 2, 17),
    ],
)
def test_a_rate_has_the_denominator_of_its_name(name: str, k: int, n: int) -> None:
    rate = METRICS[name].rate
    assert rate is not None
    assert (rate(SEEN, 90).k, rate(SEEN, 90).n) == (k, n)


def test_tokens_and_cost_count_failed_trials_too() -> None:
    tokens, cost = tokens_per_trial(SEEN), cost_per_success(SEEN)
    assert tokens is not None
    assert cost is not None
    assert tokens.low == 100
    assert cost.low == pytest.approx(0.1)


def test_an_unknown_cost_is_no_cost_of_zero() -> None:
    assert cost_per_success(Tally(passed=3)) is None
    assert tokens_per_trial(Tally()) is None


def test_sums_of_sums_keep_every_count() -> None:
    twice = pooled([SEEN, SEEN])
    assert (twice.cells, twice.passed, twice.valid_calls, twice.cost) == (2, 12, 36, 1.2)
