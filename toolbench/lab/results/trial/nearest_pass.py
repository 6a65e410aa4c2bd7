"""The passed trial that is most similar to a failed one."""

from collections.abc import Mapping, Sequence

from django.db import connection

from toolbench.lab.sql import statement

_NEAREST_PASS_SQL = statement("results/trial/nearest_pass")


def find_nearest_passes(trial_ids: Sequence[int]) -> Mapping[int, int]:
    """Return the nearest passed trial by failed trial, with one query. Trials without one in their run are absent."""
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST_PASS_SQL, [list(trial_ids)])
        return dict(cursor.fetchall())
