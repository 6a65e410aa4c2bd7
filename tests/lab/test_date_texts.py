"""Dates and times as text."""

from datetime import UTC, date, datetime

from toolbench.lab.date_texts import render_day, render_moment

MOMENT = datetime(2026, 11, 3, 9, 7, 5, tzinfo=UTC)


def test_render_moment_shows_seconds_on_request() -> None:
    assert render_moment(MOMENT) == "3 Nov 2026, 09:07"
    assert render_moment(MOMENT, seconds=True) == "3 Nov 2026, 09:07:05"


def test_render_day_accepts_date_and_moment() -> None:
    assert render_day(MOMENT) == render_day(date(2026, 11, 3)) == "3 Nov 2026"


def test_render_day_reads_iso_text_and_keeps_other_text() -> None:
    days = [render_day(text) for text in ("2026-11-03", "2026-11-03T09:07:05+00:00", "last week", "2026-11-31")]
    assert days == ["3 Nov 2026", "3 Nov 2026", "last week", "2026-11-31"]


def test_render_day_of_first_year_has_four_digits() -> None:
    assert render_day(date(1, 1, 1)) == "1 Jan 0001"
