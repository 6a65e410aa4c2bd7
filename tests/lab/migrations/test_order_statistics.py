"""Upgrade of a database from before quantiles were order statistics."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection

from tests.factories import make_cell, make_config, make_run, make_trial, make_trials
from toolbench.evals.statistics import compute_quantile
from toolbench.lab.metrics.times import Times, load_cell_times
from toolbench.lab.models import Cell

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older_schema() -> Iterator[None]:
    """Migrate to the schema before the times of cells were stored, and to the newest one after the test."""
    call_command("migrate", "lab", "0017", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def test_migrate_replaces_interpolated_quantiles(request: pytest.FixtureRequest) -> None:
    config = make_config(make_run())
    cell, empty, set_aside = (make_cell(config, name) for name in ("happy_path", "type_error_recovery", "multi_turn"))
    times = [1000.0, 2000.0, 4000.0, 8000.0]
    for time in times:
        make_trial(cell, duration_ms=time, first_token_ms=time / 10)
    make_trial(cell, "fail", duration_ms=600_000.0, end="DEADLINE_EXCEEDED")
    make_trials(empty, infra=1)
    make_trials(set_aside, **{"pass": 1})
    request.getfixturevalue("older_schema")
    with connection.cursor() as cursor:
        figures = "p50_ms = 3000, p95_ms = 7400, first_token_p50_ms = 300"
        cursor.execute(f"UPDATE lab_cell SET {figures} WHERE id = %s", [cell.pk])
        cursor.execute("UPDATE lab_cell SET p50_ms = NULL, compute_error = 'too large' WHERE id = %s", [set_aside.pk])

    call_command("migrate", "lab", verbosity=0)

    cell.refresh_from_db()
    assert (cell.p50_ms, cell.p95_ms, cell.first_token_p50_ms) == (2000.0, 8000.0, 200.0)
    assert cell.stale  # a later migration added columns that are computed from trials
    found = load_cell_times([cell, empty, set_aside])
    assert found[cell.pk].p95 == compute_quantile(times, 0.95)
    assert found[cell.pk].first_token == compute_quantile([time / 10 for time in times], 0.5)
    assert (found[empty.pk], found[set_aside.pk]) == (Times(), Times())
    assert Cell.objects.get(pk=set_aside.pk).p50_ms is None
