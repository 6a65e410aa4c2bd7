"""Charts of the rate control of a provider, as coordinates that the template writes as SVG."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from toolbench.lab.date_texts import render_moment
from toolbench.lab.endpoints.rate_control import RateControlPage
from toolbench.lab.models import PacePoint

_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 612, 12, 108  # within the viewBox of the template, 620 by 132
MIN_BAR_HEIGHT = 8  # so that a single rejection can be seen
GAP_SECONDS = 120.0  # a line is interrupted between points further apart than this


@dataclass(frozen=True, slots=True)
class RateGridLine:
    """A horizontal grid line; `y` is its coordinate."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class RateBar:
    """Bar of the rejections in one interval.

    Attributes:
        x: coordinate of the middle of the bar.
        y: coordinate of the top of the bar, which ends at the time axis.
        title: the time and the number of rejections, in words.
    """

    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class RateChart:
    """Chart of a value and its limit over time, with bars of rejections.

    Attributes:
        title: heading of the chart.
        limit_name, value_name: what the dashed and the solid line show.
        grid: horizontal lines of the axis, from the top.
        limits, values: the dashed and the solid line, as SVG `points` attributes, one for each part without a gap.
        bars: rejections; empty in the chart of requests in flight.
        first_time, last_time: labels of the ends of the time axis.
    """

    title: str
    limit_name: str
    value_name: str
    grid: tuple[RateGridLine, ...]
    limits: tuple[str, ...]
    values: tuple[str, ...]
    bars: tuple[RateBar, ...]
    first_time: str
    last_time: str


def build_rate_charts(page: RateControlPage | None) -> tuple[RateChart, ...]:
    """Return the charts of requests in flight and of answers per minute; () if there are fewer than two points."""
    if page is None or len(page.points) < 2:
        return ()
    return (
        _build_chart(
            page.points,
            ("Requests in flight", "concurrency limit", "most in flight"),
            lambda point: float(point.concurrency),
            lambda point: float(point.in_flight),
        ),
        _build_chart(
            page.points,
            ("Answers per minute", "limit of requests per minute", "answers"),
            lambda point: point.requests_per_minute,
            lambda point: _compute_per_minute(point.answers, point),
            read_rejection_rate=lambda point: _compute_per_minute(point.rejections, point),
        ),
    )


def _compute_per_minute(count: int, point: PacePoint) -> float:
    return 60 * count / max(point.seconds, 1.0)


def _build_chart(
    points: Sequence[PacePoint],
    names: tuple[str, str, str],
    read_limit: Callable[[PacePoint], float | None],
    read_value: Callable[[PacePoint], float],
    *,
    read_rejection_rate: Callable[[PacePoint], float] | None = None,
) -> RateChart:
    """Return the chart of a value and its limit at each point.

    Args:
        points: at least two points, the oldest first.
        names: title of the chart, then the names of the dashed and of the solid line.
        read_limit: returns the limit at a point, which the dashed line shows; None without a limit.
        read_value: returns the value at a point, which the solid line shows.
        read_rejection_rate: returns the rejections per minute at a point; None for a chart without bars.
    """
    top = _find_top([*(read_limit(point) or 0.0 for point in points), *map(read_value, points)])
    start, end = points[0].at, points[-1].at
    seconds = max(1.0, (end - start).total_seconds())

    def place_x(point: PacePoint) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (point.at - start).total_seconds() / seconds, 1)

    def place_y(value: float) -> float:
        return round(_BOTTOM - (_BOTTOM - _TOP) * min(value, top) / top, 1)

    def place(read: Callable[[PacePoint], float | None]) -> list[tuple[datetime, str]]:
        values = ((point, read(point)) for point in points)
        return [(point.at, f"{place_x(point)},{place_y(value)}") for point, value in values if value is not None]

    bars = [(point, read_rejection_rate(point)) for point in points if read_rejection_rate and point.rejections]
    return RateChart(
        *names,
        grid=tuple(RateGridLine(place_y(share * top), f"{share * top:g}") for share in (1.0, 0.5, 0.0)),
        limits=_join_corners(place(read_limit)),
        values=_join_corners(place(read_value)),
        bars=tuple(
            RateBar(
                place_x(point),
                min(place_y(value), _BOTTOM - MIN_BAR_HEIGHT),
                f"{render_moment(point.at, seconds=True)} UTC: {point.rejections:,} rejected",
            )
            for point, value in bars
        ),
        first_time=render_moment(start),
        last_time=f"{render_moment(end)} UTC",
    )


def _join_corners(corners: Sequence[tuple[datetime, str]]) -> tuple[str, ...]:
    """Split a line at its gaps and return the parts as SVG `points` attributes.

    A gap is a time of more than GAP_SECONDS between two corners.

    Args:
        corners: time and coordinates of each corner, the oldest first.
    """
    parts: list[list[str]] = []
    last_at: datetime | None = None
    for at, corner in corners:
        if last_at is None or (at - last_at).total_seconds() > GAP_SECONDS:
            parts.append([])
        parts[-1].append(corner)
        last_at = at
    return tuple(" ".join(part) for part in parts)


def _find_top(values: Sequence[float]) -> float:
    """Return the upper end of the axis: a round number that is at least 1 and at least every value."""
    largest = max([*values, 1.0])
    power = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= largest)
