"""Many comparisons are corrected as statsmodels corrects them."""

import pytest
from statsmodels.stats.multitest import multipletests

from toolbench.evals.statistics.many import holm


@pytest.mark.parametrize("values", [[0.04], [0.01, 0.04, 0.03, 0.005], [0.5, 0.5, 0.02], [1.0, 0.0001]])
def test_holms_correction_is_statsmodels(values: list[float]) -> None:
    assert list(holm(values)) == pytest.approx(list(multipletests(values, method="holm")[1]))


def test_nothing_to_correct() -> None:
    assert holm([]) == ()
