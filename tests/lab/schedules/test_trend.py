import pytest

from toolbench.lab.schedules.trend import format_value


@pytest.mark.parametrize(
    ("measure", "value", "text"),
    [
        ("success", 92.5, "93 %"),
        ("cost", 0.00123, "$0.0012"),
        ("cost", 12_345.6, "$12,345.60"),
        ("p95", 1.2345, "1.23 s"),
        ("p95", 99.96, "100 s"),
        ("p95", 1_234.5, "1,234 s"),
        ("tokens", 1_234_567.0, "1,234,567 k"),
    ],
)
def test_format_value_has_no_exponent(measure: str, value: float, text: str) -> None:
    assert format_value(value, measure) == text
