"""The runs that a page offers as a choice."""

from collections.abc import Collection

from django.db.models import Case, QuerySet, When

from toolbench.lab.models import Run

DEFAULT_RUN_COUNT = 12


def list_run_choices(
    kept: QuerySet[Run], chosen: Collection[int] = (), *, newest: int = DEFAULT_RUN_COUNT
) -> tuple[Run, ...]:
    """Return the runs that a page offers, with one query.

    Args:
        kept: the runs that may be offered.
        chosen: primary keys of runs that come first, however old, so that a form sent again keeps them.
        newest: how many other runs follow, newest first.
    """
    rank = Case(When(pk__in=chosen, then=0), default=1)
    return tuple(kept.order_by(rank, "-pk")[: newest + len(chosen)])
