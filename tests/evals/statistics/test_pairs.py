"""Pairs: McNemar's exact test, and an interval that the pairs that agree make narrower."""

import pytest
from statsmodels.stats.contingency_tables import mcnemar

from toolbench.evals.statistics.differences import Stratum, difference
from toolbench.evals.statistics.pairs import paired_difference, sign_p


@pytest.mark.parametrize(("fixed", "regressed"), [(8, 1), (5, 5), (0, 6), (12, 3)])
def test_one_trial_a_side_is_mcnemars_exact_test(fixed: int, regressed: int) -> None:
    found = paired_difference([1.0] * fixed + [-1.0] * regressed + [0.0] * 20)
    assert found is not None
    assert found.p == pytest.approx(mcnemar([[10, regressed], [fixed, 10]], exact=True).pvalue)


def test_pairs_that_agree_make_the_interval_narrower_than_two_samples_would() -> None:
    pairs, samples = paired_difference([1.0] * 4 + [0.0] * 36), difference([Stratum(18, 40, 22, 40)])
    assert pairs is not None
    assert samples is not None
    assert pairs.high - pairs.low < samples.high - samples.low


def test_pairs_that_never_differ_leave_room_for_some_that_would() -> None:
    found = paired_difference([0.0] * 20)
    assert found is not None
    assert found.low < 0 < found.high
    assert found.p == 1


def test_no_pair_says_nothing() -> None:
    assert paired_difference([]) is None
    assert sign_p(0, 0) == 1
