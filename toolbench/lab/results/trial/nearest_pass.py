"""The trial that passed and lies nearest to one that did not."""

from collections.abc import Mapping, Sequence

from django.db import connection

from toolbench.lab.sql import statement

_NEAREST_PASS_SQL = statement("results/trial/nearest_pass")


def find_nearest_passes(trial_ids: Sequence[int]) -> Mapping[int, int]:
    """By trial; one without any in its run is not among them. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST_PASS_SQL, [list(trial_ids)])
        return dict(cursor.fetchall())
