"""The version of the stored pools, and whether they may be used now."""

from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from toolbench.lab.models import Cell, PoolState, Run, RunChange

ENDED = Q(state__in=Run.ENDED)


def read_usable_version() -> UUID | None:
    """Return the version of the pools, with one query.

    Returns:
        None while a run in them is deleted, goes on, has changed or has cells to recompute.
    """
    changed = Exists(RunChange.objects.filter(run=OuterRef("pk")))
    outdated = Run.objects.filter(pooled=True).filter(~ENDED | Q(deleted_at__isnull=False) | changed)
    stale = Cell.objects.filter(stale=True, run__pooled=True)
    is_outdated = Exists(outdated) | Exists(stale)
    state = PoolState.objects.annotate(is_outdated=is_outdated).values_list("version", "is_outdated").first()
    return None if state is None or state[1] else state[0]
