"""What Plotly draws: plain data for the browser; colours and sizes are the style sheet's."""

from collections.abc import Callable

from csp.constants import SELF, UNSAFE_INLINE
from csp.decorators import csp_replace
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from toolbench.lab.latency import LatencyPage, LatencyRow

View = Callable[[HttpRequest], HttpResponseBase]


def with_inline_styles(view: View) -> View:
    """For chart pages only: Plotly writes style elements."""
    return csp_replace({"style-src": [SELF, UNSAFE_INLINE]})(view)


def latency_chart(page: LatencyPage) -> dict[str, object]:
    """{"title", "rows": [{"label", "times", "p50", "p95"}]}, times in seconds, fastest median first."""
    rows = sorted(page.rows, key=lambda row: row.p50.value)
    return {"title": page.metric_title, "rows": [_row(row) for row in rows]}


def _row(row: LatencyRow) -> dict[str, object]:
    return {
        "label": row.label,
        "times": [round(time / 1000, 4) for time in row.times],
        "p50": [_seconds(row.p50.low), _seconds(row.p50.value), _seconds(row.p50.high)],
        "p95": [_seconds(row.p95.low), _seconds(row.p95.value), _seconds(row.p95.high)] if row.p95 else None,
    }


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds / 1000, 4)
