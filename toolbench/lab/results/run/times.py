"""Pace of a running run, and the time during which trials of a run were running."""

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
    """Pace at which trials finish, and estimated time for the other trials. Unknown figures are None.

    Attributes:
        per_minute: finished trials a minute.
        window_seconds: length of the time over which the pace was measured.
        seconds_left: estimated seconds until the last trial ends; None if no trial is queued or running.
        seconds_left_low: lower bound of `seconds_left`.
        seconds_left_high: upper bound of `seconds_left`.
    """

    per_minute: float | None = None
    window_seconds: float | None = None
    seconds_left: float | None = None
    seconds_left_low: float | None = None
    seconds_left_high: float | None = None


def get_pace(run: Run, run_tally: Tally) -> Pace:
    """Return the pace of a running run in the last PACE_WINDOW.

    All figures are None if the run is not running, or if fewer than two of its trials ended in that time.

    The estimate assumes a constant pace. The number of ended trials is treated as a Poisson count: the bounds of the
    estimate are those of a pace that is two standard errors higher or lower.

    Args:
        run: the run.
        run_tally: counts of all its cells.
    """
    if run.state != Run.State.RUNNING:
        return Pace()
    since = timezone.now() - PACE_WINDOW
    recent = run.trials.filter(finished_at__gte=since, execution__gt=0)
    sums = recent.aggregate(count=Count("pk"), first_start=Min("started_at"))
    count, open_trials = sums["count"], run_tally.queued + run_tally.running
    if count < 2 or not sums["first_start"]:
        return Pace()
    seconds = max((timezone.now() - max(sums["first_start"], since)).total_seconds(), 0.001)
    margin = 2 * count**0.5
    max_per_second, min_per_second = (count + margin) / seconds, max(count - margin, 0.5) / seconds
    pace = Pace(per_minute=60 * count / seconds, window_seconds=seconds)
    if not open_trials:
        return pace
    return replace(
        pace,
        seconds_left=open_trials * seconds / count,
        seconds_left_low=open_trials / max_per_second,
        seconds_left_high=open_trials / min_per_second,
    )


def measure_active_seconds(run: Run) -> float | None:
    """Return the seconds during which at least one trial of the run was running; None if no trial has ended.

    Only the last execution of each trial counts, so that pauses and the time before a retry are not included.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE_SECONDS_SQL, [run.pk])
        (seconds,) = cursor.fetchone()
    return None if seconds is None else float(seconds)
