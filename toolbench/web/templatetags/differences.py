"""Template filters for differences, their intervals and p-values."""

from django import template

from toolbench.evals.statistics.differences import ALPHA, Difference
from toolbench.evals.statistics.quantile_texts import OPEN_BOUND
from toolbench.evals.statistics.rounding import format_rounded, round_half_up
from toolbench.lab.results.compare.query import INSTANCE_KIND_LABELS
from toolbench.lab.results.compare.statistics import RateComparison
from toolbench.web.templatetags.figures import money

register = template.Library()

MINUS = "−"
MAX_DECIMAL_PLACES = 9


@register.filter
def points(fraction: float | None) -> str:
    """Return a difference of shares in percentage points with its sign; empty for None."""
    return "" if fraction is None else _format_signed(100 * fraction, 1)


@register.filter
def p_value(p: float | None) -> str:
    """Return a p-value, with enough decimals to show whether it is above ALPHA; empty for None."""
    if p is None:
        return ""
    if p < 0.001:
        return "p < 0.001"
    decimal_places = (
        places for places in range(3, MAX_DECIMAL_PLACES) if (round_half_up(p, places) <= ALPHA) == (p <= ALPHA)
    )
    return f"p = {format_rounded(p, next(decimal_places, MAX_DECIMAL_PLACES))}"


@register.filter
def signed_seconds(milliseconds: float | None) -> str:
    """Return a difference of times in seconds with its sign.

    For None, which stands for an open bound of an interval, return "open".
    """
    return OPEN_BOUND if milliseconds is None else _format_signed(milliseconds / 1000, 2)


def _format_signed(number: float, min_places: int) -> str:
    """Return a number with its sign.

    The text has the fewest decimals, at least `min_places` and fewer than MAX_DECIMAL_PLACES, with which the number
    does not round to 0. If it always rounds to 0, return 0 without a sign.
    """
    decimal_places = next(
        (places for places in range(min_places, MAX_DECIMAL_PLACES) if round_half_up(abs(number), places)), None
    )
    if decimal_places is None:
        return format_rounded(0.0, min_places)
    return f"{MINUS if number < 0 else '+'}{format_rounded(abs(number), decimal_places)}"


@register.filter
def signed_money(dollars: float | None) -> str:
    """Return a difference of dollars with its sign, without one if it rounds to 0; empty for None."""
    if dollars is None:
        return ""
    amount = money(abs(dollars))
    sign = MINUS if dollars < 0 else "+"
    return f"{sign}{amount}" if set(amount) & set("123456789") else amount


@register.filter
def instance_kind(kind: str) -> str:
    """Return the label of an instance kind; a kind without a label is returned unchanged."""
    return INSTANCE_KIND_LABELS.get(kind, kind)


@register.inclusion_tag("_difference.html")
def difference(compared: RateComparison) -> dict[str, object]:
    """Show a difference with its interval and a bar on an axis from -100 to 100 points.

    If there is no difference, show why.
    """
    shown_difference = compared.difference
    return {
        "compared": compared,
        "axis": _build_axis(shown_difference),
        "label": _describe_bar(compared, shown_difference) if shown_difference else "",
    }


def _describe_bar(compared: RateComparison, shown_difference: Difference) -> str:
    qualifiers = "anytime-valid " * compared.sequential + "simultaneous " * (shown_difference.comparisons > 1)
    interval = f"{points(shown_difference.low)} to {points(shown_difference.high)} points"
    return f"{qualifiers}95\u00a0% interval {interval}; the line is at a difference of 0"


def _build_axis(shown_difference: Difference | None) -> dict[str, str]:
    """Return the positions of the difference and its bounds in percent of the axis; {} for None."""
    if shown_difference is None:
        return {}
    shares = {"low": shown_difference.low, "value": shown_difference.value, "high": shown_difference.high}
    return {name: format_rounded(50 + 50 * share, 1) for name, share in shares.items()}
