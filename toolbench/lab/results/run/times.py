"""Pace of a run and the time during which its trials ran."""

from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import connection
from django.db.models import Count, Min
from django.utils import timezone

from toolbench.lab.metrics.tally import Tally
from toolbench.lab.models import Run
from toolbench.lab.sql import load_statement

PACE_WINDOW = timedelta(minutes=3)

_ACTIVE_SECONDS_SQL = load_statement("results/run/active_seconds")


@dataclass(frozen=True, slots=True)
class Pace:
    """Rate at which trials finish, and the estimate for the remaining ones.

    Attributes:
        per_minute: None before two trials have finished.
        seconds: the time over which the pace was observed.
        left: seconds left at this pace.
        left_low: lower end of the range of `left`.
        left_high: upper end of the range of `left`.
    """

    per_minute: float | None = None
    seconds: float | None = None
    left: float | None = None
    left_low: float | None = None
    left_high: float | None = None


def get_pace(run: Run, whole: Tally) -> Pace:
    """Return the pace of the last minutes, as far as trials ran in them. It is empty unless the run is running.

    The time left assumes that the pace holds. Its range assumes that the count is off by two standard errors of a
    Poisson count.
    """
    if run.state != Run.State.RUNNING:
        return Pace()
    since = timezone.now() - PACE_WINDOW
    recent = run.trials.filter(finished_at__gte=since, execution__gt=0)
    found = recent.aggregate(count=Count("pk"), first=Min("started_at"))
    count, waiting = found["count"], whole.queued + whole.running
    if count < 2 or not found["first"]:
        return Pace()
    seconds = max((timezone.now() - max(found["first"], since)).total_seconds(), 0.001)
    spread = 2 * count**0.5
    fast, slow = (count + spread) / seconds, max(count - spread, 0.5) / seconds
    pace = Pace(per_minute=60 * count / seconds, seconds=seconds)
    if not waiting:
        return pace
    return replace(pace, left=waiting * seconds / count, left_low=waiting / fast, left_high=waiting / slow)


def measure_active_seconds(run: Run) -> float | None:
    """Return the seconds during which a trial of the run was running; None if no trial ran.

    Pauses and the time before a later retry are excluded. Of a retried trial the last execution counts.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE_SECONDS_SQL, [run.pk])
        (seconds,) = cursor.fetchone()
    return None if seconds is None else float(seconds)
