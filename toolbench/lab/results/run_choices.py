"""The runs that a page offers as a choice."""

from collections.abc import Collection

from django.db.models import Case, QuerySet, When

from toolbench.lab.models import Run

DEFAULT_RUN_COUNT = 12


def list_run_choices(
    kept: QuerySet[Run], chosen: Collection[int] = (), *, newest: int = DEFAULT_RUN_COUNT
) -> tuple[Run, ...]:
    """The chosen ones first, however old, so that a form sent again keeps them; then the newest. One query."""
    rank = Case(When(pk__in=chosen, then=0), default=1)
    return tuple(kept.order_by(rank, "-pk")[: newest + len(chosen)])
