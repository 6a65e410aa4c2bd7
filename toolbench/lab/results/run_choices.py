"""Runs that a page offers as choices, and constants for warnings of several pages."""

from collections.abc import Collection
from datetime import timedelta

from django.db.models import Case, QuerySet, When

from toolbench.lab.models import Run

DEFAULT_RUN_COUNT = 12
MAX_TIME_BETWEEN_RUNS = timedelta(hours=1)  # without a warning: the load of a provider may change in a longer time
RETRIED = "Trials were retried after an error; end-to-end success counts them as failures."
ADDED_MANUALLY = "Trials were added manually after results were seen: confirm decisions that rest on them."


def list_run_choices(
    runs: QuerySet[Run], chosen: Collection[int] = (), *, newest: int = DEFAULT_RUN_COUNT
) -> tuple[Run, ...]:
    """Return the runs that a page offers, with one query.

    Args:
        runs: the runs that the page may offer.
        chosen: primary keys of chosen runs. They come first, also old ones, so that a form keeps them.
        newest: maximum number of further runs, the newest first. Each chosen key that is not in `runs` allows one more.
    """
    rank = Case(When(pk__in=chosen, then=0), default=1)
    return tuple(runs.order_by(rank, "-pk")[: newest + len(chosen)])
