"""Tests of the estimators of pass^k and pass@k, against counting every selection of trials."""

from itertools import combinations

import pytest

from toolbench.evals.metrics import compute_cost_per_success, compute_f1, compute_pass_at, compute_pass_hat


@pytest.mark.parametrize(("passed", "tried", "k"), [(3, 5, 2), (5, 5, 5), (0, 4, 1), (6, 7, 3), (1, 6, 4)])
def test_both_estimates_are_the_mean_over_every_choice_of_k(passed: int, tried: int, k: int) -> None:
    outcomes = [place < passed for place in range(tried)]
    chosen = list(combinations(outcomes, k))
    assert compute_pass_hat(passed, tried, k) == pytest.approx(sum(map(all, chosen)) / len(chosen))
    assert compute_pass_at(passed, tried, k) == pytest.approx(sum(map(any, chosen)) / len(chosen))


def test_fewer_tries_than_k_give_no_estimate() -> None:
    assert compute_pass_hat(2, 2, 3) is None
    assert compute_pass_at(2, 2, 3) is None


def test_one_try_is_the_plain_share() -> None:
    assert compute_pass_hat(3, 4, 1) == compute_pass_at(3, 4, 1) == 0.75


@pytest.mark.parametrize(("passed", "tried", "k"), [(3, 2, 1), (-1, 2, 1), (1, 2, 0)])
def test_what_is_no_count_is_refused(passed: int, tried: int, k: int) -> None:
    with pytest.raises(ValueError, match="no estimate"):
        compute_pass_hat(passed, tried, k)


def test_what_cannot_be_known_is_none_and_never_zero() -> None:
    assert compute_f1(0, 0, 0) is None
    assert compute_f1(0, 2, 0) == 0
    assert compute_cost_per_success(None, 3) is None
    assert compute_cost_per_success(0.6, 0) is None
