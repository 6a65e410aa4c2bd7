"""Tests that halves are rounded away from zero."""

import pytest

from toolbench.evals.statistics.rounding import format_rounded, round_half_up


@pytest.mark.parametrize(
    ("number", "places", "expected"),
    [
        (92.5, 0, "93"),
        (91.5, 0, "92"),
        (0.5, 0, "1"),
        (62.25, 1, "62.3"),
        (2.675, 2, "2.68"),
        (1e-9, 0, "0"),
        (1e30, 1, f"{1e30:.1f}"),
        (1.7e308, 0, f"{1.7e308:.0f}"),
    ],
)
def test_format_rounded_rounds_halves_up_at_every_place(number: float, places: int, expected: str) -> None:
    assert format_rounded(number, places) == expected
    assert round_half_up(number, places) == float(expected)


def test_round_half_up_by_default_rounds_to_whole_numbers() -> None:
    assert (round_half_up(2.5), format_rounded(2.5)) == (3.0, "3")
