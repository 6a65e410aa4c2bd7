"""Rendered differences and p-values: rounding keeps the sign, and the side of a limit."""

from toolbench.web.templatetags.differences import MINUS, p_value, points, signed_money, signed_seconds


def test_points_near_zero_keep_their_sign() -> None:
    assert [points(item) for item in (0.0, 0.123, -0.05, 0.0003, -0.000004)] == [
        "0.0",
        "+12.3",
        "−5.0",
        "+0.03",
        "−0.0004",
    ]
    assert points(1e-17) == "0.0"
    assert points(None) == ""


def test_p_value_near_limit_keeps_its_side_of_it() -> None:
    assert [p_value(item) for item in (0.116, 0.05, 0.0502, 0.04998)] == [
        "p = 0.116",
        "p = 0.050",
        "p = 0.0502",
        "p = 0.050",
    ]
    assert p_value(0.050004) == "p = 0.050004"
    assert p_value(0.0001) == "p < 0.001"


def test_signed_seconds_near_zero_keep_their_sign() -> None:
    assert [signed_seconds(item) for item in (0.0, 1500.0, -2.0, None)] == ["0.00", "+1.50", "−0.002", "open"]


def test_signed_money_has_a_sign_unless_it_rounds_to_zero() -> None:
    assert signed_money(None) == ""
    assert (signed_money(1.5), signed_money(-1.5)) == ("+$1.50", f"{MINUS}$1.50")
    assert not {signed_money(value)[0] for value in (0.0, 1e-6, -1e-9)} - {"$"}
