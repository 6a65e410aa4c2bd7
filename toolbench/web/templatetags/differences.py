"""How differences are written: in percentage points with sign and interval, and p-values."""

from django import template

from toolbench.evals.statistics.differences import Difference
from toolbench.evals.statistics.quantile_texts import OPEN_BOUND
from toolbench.evals.statistics.rounding import written
from toolbench.lab.comparisons.compare_counts import Compared
from toolbench.web.templatetags.figures import money

register = template.Library()

MINUS = "−"


@register.filter
def points(fraction: float | None) -> str:
    """A difference of shares in percentage points with its sign; empty for None."""
    if fraction is None:
        return ""
    text = written(100 * abs(fraction), 1)
    return text if text == "0.0" else f"{MINUS if fraction < 0 else '+'}{text}"


@register.filter
def p_value(p: float | None) -> str:
    if p is None:
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


@register.filter
def signed_seconds(milliseconds: float | None) -> str:
    """Return a difference of times in seconds with its sign; `open` for a bound that does not exist."""
    if milliseconds is None:
        return OPEN_BOUND
    return f"{MINUS if milliseconds < 0 else '+'}{abs(milliseconds) / 1000:.2f}"


@register.filter
def signed_money(dollars: float | None) -> str:
    """A difference of dollars with its sign."""
    return "" if dollars is None else f"{MINUS if dollars < 0 else '+'}{money(abs(dollars))}"


@register.inclusion_tag("_difference.html")
def difference(compared: Compared) -> dict[str, object]:
    """The difference with interval and p-value, and a bar on an axis from -100 to 100 points."""
    return {"compared": compared, "axis": _axis(compared.difference)}


def _axis(found: Difference | None) -> dict[str, str]:
    if found is None:
        return {}
    places = {"low": found.low, "value": found.value, "high": found.high}
    return {name: written(50 + 50 * share, 1) for name, share in places.items()}
