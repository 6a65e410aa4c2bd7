"""Version of the stored pools (CellPool and CausePool), and the check whether they are up to date."""

from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from toolbench.lab.models import Cell, PoolState, Run, RunChange

ENDED = Q(state__in=Run.ENDED)  # condition on runs


def read_usable_version(*obstacles: Exists) -> UUID | None:
    """Return the version of the pools if they are up to date, with one query.

    Args:
        obstacles: further conditions, each that a row exists. If one of them holds, the pools count as outdated.

    Returns:
        The version. It is None before the first refresh, and until the next refresh if a pooled run was deleted or
        reopened, or its cells were recomputed. It is also None while a pooled run has cells to recompute, and while an
        obstacle holds.
    """
    has_changed = Exists(RunChange.objects.filter(run=OuterRef("pk")))
    outdated_runs = Run.objects.filter(pooled=True).filter(~ENDED | Q(deleted_at__isnull=False) | has_changed)
    stale_cells = Cell.objects.filter(stale=True, run__pooled=True)
    is_outdated = Q(Exists(outdated_runs), Exists(stale_cells), *obstacles, _connector=Q.OR)
    return PoolState.objects.exclude(is_outdated).values_list("version", flat=True).first()


def find_pool_version(scope: Q) -> UUID | None:
    """Return the version of the pools if all runs of a scope are pooled, with one query.

    The figures of these runs do not change while the version is the same.

    Args:
        scope: condition on runs; deleted runs are ignored.

    Returns:
        The version; None while a run of the scope is not pooled, and if `read_usable_version` returns None.
    """
    return read_usable_version(Exists(Run.objects.filter(scope, deleted_at=None, pooled=False)))
