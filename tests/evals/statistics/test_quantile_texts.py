"""Tests of the texts of quantiles, with and without open bounds."""

import pytest

from toolbench.evals.statistics import compute_quantile
from toolbench.evals.statistics.quantile_texts import render_quantile, render_quantile_bounds, render_quantile_value
from toolbench.evals.statistics.quantiles import Quantile

FORTY = Quantile(3_500.0, 3_000.0, None, 40, 0.95)


@pytest.mark.parametrize(
    ("quantile", "text"),
    [
        (FORTY, "3.5 s [3.0 – open, n = 40]"),
        (Quantile(3_450.0, 3_000.0, 12_340.0, 1_200, 0.95), "3.5 s [3.0 – 12.3, n = 1,200]"),
        (Quantile(999.0, None, None, 1, 0.5), "1.00 s [open, n = 1]"),
        (Quantile(12.3, 9.0, 101.0, 80, 0.95), "0.012 s [0.009 – 0.101, n = 80]"),
        (None, "–"),
    ],
)
def test_render_quantile_writes_value_bounds_and_number(quantile: Quantile | None, text: str) -> None:
    assert render_quantile(quantile) == text


def test_render_quantile_joins_value_and_bounds() -> None:
    assert render_quantile(FORTY) == f"{render_quantile_value(FORTY)} {render_quantile_bounds(FORTY)}"


@pytest.mark.parametrize(("n", "opens"), [(1, 1), (71, 1), (72, 0)])
def test_render_quantile_names_open_bounds_once(n: int, opens: int) -> None:
    assert render_quantile(compute_quantile([1_000.0] * n, 0.95)).count("open") == opens


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(1_000.0, "1.0 s"), (999.0, "1.00 s"), (100.0, "0.10 s"), (99.0, "0.099 s")]
)
def test_render_quantile_value_has_more_places_the_shorter_the_time(milliseconds: float, text: str) -> None:
    assert render_quantile_value(Quantile(milliseconds, None, None, 1, 0.5)) == text
