"""Coordinates of the charts on the latency page."""

import re

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_trial, recompute_stale_cells
from toolbench.lab.results.latency.page import get_latency
from toolbench.lab.results.latency.query import LatencyQuery
from toolbench.web import latency_charts
from toolbench.web.latency_charts import CURVE_HEIGHT, CURVE_WIDTH, WIDTH, LatencyCharts, build_latency_charts

pytestmark = pytest.mark.django_db


def draw(times: dict[str, list[float]]) -> LatencyCharts:
    for model, durations in times.items():
        cell = make_cell(make_config(make_run(), make_model(model)))
        for duration in durations:
            make_trial(cell, duration_ms=duration)
    recompute_stale_cells()
    return build_latency_charts(get_latency(LatencyQuery()))


def test_build_latency_charts_without_rows_draws_nothing() -> None:
    charts = draw({})
    assert (charts.rows, charts.curves, charts.panels, charts.beyond_count) == ((), (), (), 0)


def test_build_latency_charts_puts_times_on_one_axis() -> None:
    charts = draw({"a": [1000.0, 2000.0, 4000.0], "b": [8000.0]})
    assert (charts.end_ms, [tick.label for tick in charts.ticks]) == (10_000.0, ["0", "2", "4", "6", "8", "10 s"])
    first = charts.rows[0]
    assert (first.row.model, first.p50.x, first.p95.x) == ("a", WIDTH * 0.2, WIDTH * 0.4)
    assert (first.p95.is_open, first.p95.low, first.p95.high) == (True, WIDTH * 0.2, WIDTH)
    assert re.findall(r"M(\d+) \d+h0", first.dots) == ["56", "112", "224"]
    assert charts.curves[0].path.startswith(f"M0 {CURVE_HEIGHT}H{CURVE_WIDTH / 10:.1f}V{CURVE_HEIGHT * 2 / 3:.1f}")
    assert charts.curves[0].path.endswith(f"V0.0H{CURVE_WIDTH}")
    (panel,) = charts.panels
    assert ([line.p50 for line in panel.lines], panel.answers) == ([52.0, 208.0], (1, 3))


def test_build_latency_charts_samples_many_answers_and_counts_late_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency_charts, "MAX_DOTS", 5)
    charts = draw({"a": [1000.0 + number for number in range(150)] + [90_000.0]})
    assert (charts.is_sampled, charts.beyond_count) == (True, 1)
    assert charts.rows[0].dots.count("M") == 5
    assert f"M{WIDTH} " in charts.rows[0].dots
