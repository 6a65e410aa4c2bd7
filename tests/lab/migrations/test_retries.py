"""Upgrade of an older database: retries are unknown until the stored steps are counted."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Cell

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older_schema() -> Iterator[None]:
    """Migrate to the schema before retries were counted, and to the newest one after the test."""
    call_command("migrate", "lab", "0017", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def make_limited_cell() -> Cell:
    cell = make_cell(make_config(make_run()))
    trial = make_trial(cell, retries=1, requests=2)
    make_step(trial, status=429, ok=False, error_code="rate_limited")
    make_step(trial, status=200, attempt=2, backoff_ms=750.0)
    recompute_stale_cells()
    return cell


def test_migrate_makes_retries_unknown_until_recomputed(request: pytest.FixtureRequest) -> None:
    cell = make_limited_cell()
    request.getfixturevalue("older_schema")

    call_command("migrate", "lab", verbosity=0)

    cell.refresh_from_db()
    assert (cell.stale, tally_cells([cell]).retries_known) == (True, False)
    recompute_stale_cells()
    cell.refresh_from_db()
    assert (cell.answers_429, cell.trials_429, cell.retries, cell.backoff_ms) == (1, 1, 1, 750.0)
    assert tally_cells([cell]).retries_known


def test_migrate_keeps_zero_retries_of_cells_without_them(request: pytest.FixtureRequest) -> None:
    limited, plain = make_limited_cell(), make_cell(make_config(make_run()), "chat_only")
    make_step(make_trial(plain), status=200)
    recompute_stale_cells()
    request.getfixturevalue("older_schema")

    call_command("migrate", "lab", verbosity=0)

    plain.refresh_from_db()
    assert (plain.stale, plain.answers_429, tally_cells([plain]).retries_known) == (True, 0, True)
    limited.refresh_from_db()
    assert (limited.stale, tally_cells([limited]).retries_known) == (True, False)


def test_migrate_rebuilds_incomplete_index(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("older_schema")
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX retry_steps ON lab_step (id)")

    call_command("migrate", "lab", verbosity=0)

    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'retry_steps'")
        ((index_definition,),) = cursor.fetchall()
    assert "(trial_id) INCLUDE" in index_definition
