"""Tests of the estimators of pass^k and pass@k, against counting every selection of trials."""

from itertools import combinations

import pytest

from toolbench.evals.metrics import compute_f1, compute_pass_at, compute_pass_hat


@pytest.mark.parametrize(("passed", "tried", "k"), [(3, 5, 2), (5, 5, 5), (0, 4, 1), (6, 7, 3), (1, 6, 4)])
def test_pass_hat_and_pass_at_are_the_mean_over_every_choice_of_k(passed: int, tried: int, k: int) -> None:
    outcomes = [index < passed for index in range(tried)]
    choices = list(combinations(outcomes, k))
    assert compute_pass_hat(passed, tried, k) == pytest.approx(sum(map(all, choices)) / len(choices))
    assert compute_pass_at(passed, tried, k) == pytest.approx(sum(map(any, choices)) / len(choices))


def test_pass_hat_and_pass_at_of_fewer_trials_than_k_are_none() -> None:
    assert compute_pass_hat(2, 2, 3) is None
    assert compute_pass_at(2, 2, 3) is None


def test_pass_hat_and_pass_at_of_k_1_are_the_share() -> None:
    assert compute_pass_hat(3, 4, 1) == compute_pass_at(3, 4, 1) == 0.75


@pytest.mark.parametrize(("passed", "tried", "k"), [(3, 2, 1), (-1, 2, 1), (1, 2, 0)])
def test_compute_pass_hat_refuses_impossible_counts(passed: int, tried: int, k: int) -> None:
    with pytest.raises(ValueError, match="cannot estimate"):
        compute_pass_hat(passed, tried, k)


def test_f1_without_data_is_none_not_0() -> None:
    assert compute_f1(0, 0, 0) is None
    assert compute_f1(0, 2, 0) == 0
