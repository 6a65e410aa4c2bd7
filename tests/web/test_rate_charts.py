from datetime import UTC, datetime, timedelta

from toolbench.lab.endpoints.rate_control import RateControlPage
from toolbench.lab.models import PacePoint
from toolbench.web.rate_charts import GAP_SECONDS, build_rate_charts

NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)


def make_page(*seconds: float, **fields: float) -> RateControlPage:
    defaults = {"seconds": 10, "concurrency": 40, "in_flight": 20, "answers": 10, "rejections": 0}
    points = [PacePoint(at=NOON + timedelta(seconds=second), **(defaults | fields)) for second in seconds]
    return RateControlPage(tuple(points), 40, None, None)


def test_build_rate_charts_needs_two_points() -> None:
    assert build_rate_charts(None) == ()
    assert build_rate_charts(make_page(0)) == ()


def test_build_rate_charts_draws_limit_and_requests_in_flight() -> None:
    in_flight, per_minute = build_rate_charts(make_page(0, 10))
    assert in_flight.limits == ("40.0,12.0 612.0,12.0",)
    assert in_flight.values == ("40.0,60.0 612.0,60.0",)
    assert [line.label for line in in_flight.grid] == ["40", "20", "0"]
    assert (in_flight.first_time, in_flight.last_time) == ("25 Nov 2026, 12:00", "25 Nov 2026, 12:00 UTC")
    assert per_minute.limits == ()
    assert [line.label for line in per_minute.grid] == ["60", "30", "0"]


def test_build_rate_charts_interrupts_lines_at_gaps() -> None:
    in_flight, _ = build_rate_charts(make_page(0, 10, 20 + GAP_SECONDS, 30 + GAP_SECONDS))
    assert len(in_flight.values) == 2


def test_build_rate_charts_draws_bar_for_rejections() -> None:
    in_flight, per_minute = build_rate_charts(make_page(0, 10, rejections=5, requests_per_minute=90.0))
    assert in_flight.bars == ()
    assert [bar.title for bar in per_minute.bars] == [
        "25 Nov 2026, 12:00:00 UTC: 5 rejected",
        "25 Nov 2026, 12:00:10 UTC: 5 rejected",
    ]
    assert len(per_minute.limits) == 1


def test_build_rate_charts_draws_visible_bar_for_single_rejection() -> None:
    _, per_minute = build_rate_charts(make_page(0, 10, answers=9000, rejections=1))
    assert [bar.y for bar in per_minute.bars] == [100, 100]
