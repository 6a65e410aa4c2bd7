"""Data of the Plotly charts. Colours and sizes come from the style sheet."""

from collections.abc import Callable

from csp.constants import SELF, UNSAFE_INLINE
from csp.decorators import csp_replace
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from toolbench.evals.statistics.quantiles import Quantile
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
