"""Data of the Plotly charts. Colours and sizes come from the style sheet."""

from collections.abc import Callable

from csp.constants import SELF, UNSAFE_INLINE
from csp.decorators import csp_replace
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from toolbench.evals.statistics.quantiles import Quantile
from toolbench.lab.results.decide.page import DecidePage, DecideRow
from toolbench.lab.results.run.latency import LatencyPage, LatencyRow

ViewFunction = Callable[[HttpRequest], HttpResponseBase]


def allow_inline_styles(view: ViewFunction) -> ViewFunction:
    """Allow inline styles in a chart page, because Plotly writes style elements."""
    return csp_replace({"style-src": [SELF, UNSAFE_INLINE]})(view)


def build_latency_chart(page: LatencyPage) -> dict[str, object]:
    """Return the latency chart with times in seconds, the fastest median first.

    Returns:
        {"title", "rows": [{"label", "times", "p50", "p95", "p99"}]}, each quantile as low, value and high.
    """
    rows = sorted(page.rows, key=lambda row: row.p50.value)
    return {"title": page.metric_title, "rows": [_build_row(row) for row in rows]}


def build_decide_chart(page: DecidePage) -> dict[str, object]:
    """Return the decision chart, only with rows whose p95 is known and never with those of local models.

    Returns:
        {"limit", "target", "rows": [{"label", "state", "p95", "delivered", "cost", "front"}]}, with low, value and high
        of p95 in seconds and of delivered in percent.
    """
    rule = page.decision.rule
    points = [_build_point(row) for row in page.rows if row.standing.p95]
    return {"limit": _convert_to_seconds(rule.within_ms), "target": rule.success, "rows": points}


def _build_point(row: DecideRow) -> dict[str, object]:
    p95, cost, rate = row.standing.p95, row.candidate.measured.cost, row.delivered
    return {
        "label": row.candidate.measured.label,
        "state": row.word,
        "p95": _list_estimate_seconds(p95) if p95 else None,
        "delivered": [rate.low_axis, rate.axis, rate.high_axis],
        "cost": cost and round(cost.value, 6),
        "front": row.on_front,
    }


def _build_row(row: LatencyRow) -> dict[str, object]:
    return {
        "label": row.label,
        "times": [round(time / 1000, 4) for time in row.times],
        "p50": _list_estimate_seconds(row.p50),
        "p95": _list_estimate_seconds(row.p95),
        "p99": _list_estimate_seconds(row.p99),
    }


def _list_estimate_seconds(estimate: Quantile) -> list[float | None]:
    return [_convert_to_seconds(estimate.low), _convert_to_seconds(estimate.value), _convert_to_seconds(estimate.high)]


def _convert_to_seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds / 1000, 4)
