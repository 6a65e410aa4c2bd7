"""Version of the stored pools, and the check whether they are up to date."""

from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from toolbench.lab.models import Cell, PoolState, Run, RunChange

ENDED = Q(state__in=Run.ENDED)


def read_usable_version(*obstacles: Exists) -> UUID | None:
    """Return the version of the pools if they are up to date, with one query.

    Args:
        obstacles: further rows that, if they exist, make the pools outdated.

    Returns:
        The version; None while a pooled run is deleted, runs again, has changed or has cells to recompute, or while an
        obstacle exists.
    """
    changed = Exists(RunChange.objects.filter(run=OuterRef("pk")))
    outdated = Run.objects.filter(pooled=True).filter(~ENDED | Q(deleted_at__isnull=False) | changed)
    stale = Cell.objects.filter(stale=True, run__pooled=True)
    is_outdated = Q(Exists(outdated), Exists(stale), *obstacles, _connector=Q.OR)
    return PoolState.objects.exclude(is_outdated).values_list("version", flat=True).first()


def find_pool_version(scope: Q) -> UUID | None:
    """Return the version of the pools, with one query; None while a run of `scope` that is not deleted is not pooled.

    Figures of these runs are the same as long as the version is.
    """
    return read_usable_version(Exists(Run.objects.filter(scope, deleted_at=None, pooled=False)))
