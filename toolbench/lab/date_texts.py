"""Dates and times as text, in the same form on pages, in messages and in reports."""

from datetime import date, datetime

from django.utils.dateformat import format as format_date


def render_moment(moment: datetime, *, seconds: bool = False) -> str:
    """Return a date with its time of day (UTC), such as `30 Nov 2026, 09:27`.

    Args:
        moment: the date and time in UTC.
        seconds: whether to show the seconds.
    """
    return format_date(moment, "j M Y, H:i:s" if seconds else "j M Y, H:i")


def render_day(day: date | str) -> str:
    """Return a date, such as `30 Nov 2026`.

    Args:
        day: a date, or a date and time in UTC, also as text in ISO 8601. Any other text is returned unchanged.
    """
    if not isinstance(day, str):
        return format_date(day, "j M Y")
    try:
        return format_date(datetime.fromisoformat(day), "j M Y")
    except ValueError:
        return day
