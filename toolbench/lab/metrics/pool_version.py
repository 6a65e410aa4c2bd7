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
        The version; None before the first refresh, while a pooled run is deleted, runs again, has changed or has cells
        to recompute, and while an obstacle exists.
    """
    has_changed = Exists(RunChange.objects.filter(run=OuterRef("pk")))
    outdated_runs = Run.objects.filter(pooled=True).filter(~ENDED | Q(deleted_at__isnull=False) | has_changed)
    stale_cells = Cell.objects.filter(stale=True, run__pooled=True)
    is_outdated = Q(Exists(outdated_runs), Exists(stale_cells), *obstacles, _connector=Q.OR)
    return PoolState.objects.exclude(is_outdated).values_list("version", flat=True).first()


def find_pool_version(scope: Q) -> UUID | None:
    """Return the version of the pools if every run of `scope` that is not deleted is pooled; one query.

    The figures of these runs do not change while the version is the same.

    Returns:
        The version; None while such a run is not pooled, and in the cases of `read_usable_version`.
    """
    return read_usable_version(Exists(Run.objects.filter(scope, deleted_at=None, pooled=False)))
