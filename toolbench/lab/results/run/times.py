"""How fast a run goes, and for how long its trials ran."""

from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import connection
from django.db.models import Count, Min
from django.utils import timezone

from toolbench.lab.metrics.tally import Tally
from toolbench.lab.models import Run

PACE_WINDOW = timedelta(minutes=3)

# Time in which at least one trial was under way: the union of all spans, each without what lies before the end of an
# earlier one.
_ACTIVE_SECONDS_SQL = """
WITH spans AS (
    SELECT started_at, finished_at, max(finished_at) OVER (
        ORDER BY started_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ended_before
    FROM lab_trial WHERE run_id = %s AND execution > 0 AND finished_at >= started_at
)
SELECT extract(epoch FROM sum(finished_at - greatest(started_at, ended_before))
    FILTER (WHERE ended_before IS NULL OR finished_at > ended_before))::float8 FROM spans
"""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast trials finish, and what follows for those that are left.

    Attributes:
        per_minute: None before two trials have finished.
        seconds: the time over which the pace was observed.
        left: seconds left at this pace, with a range.
    """

    per_minute: float | None = None
    seconds: float | None = None
    left: float | None = None
    left_low: float | None = None
    left_high: float | None = None


def get_pace(run: Run, whole: Tally) -> Pace:
    """Return the pace of the last minutes, as far as trials ran in them. Only a run that goes on has one.

    The time left assumes that the pace holds; its range, that the count is off by two standard errors of a Poisson
    count.
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
    """Return for how many seconds a trial of the run was under way; None where no trial ran.

    Pauses and the wait before a later retry are left out. Of a retried trial the last execution counts.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE_SECONDS_SQL, [run.pk])
        (seconds,) = cursor.fetchone()
    return None if seconds is None else float(seconds)
