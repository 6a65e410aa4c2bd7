"""Upgrade of a database with impossible figures, from the last version that accepted them."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from toolbench.lab.models import Cell

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older_schema() -> Iterator[None]:
    """Migrate to the schema before figures were bounded, and to the newest one after the test."""
    call_command("migrate", "lab", "0013", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def make_poisoned_cell() -> Cell:
    cell = make_cell(make_config(make_run()), stale=False)
    for _ in range(2):
        make_trial(cell)
    return cell


def test_migrate_database_with_implausible_figures_recomputes_cells(request: pytest.FixtureRequest) -> None:
    cell = make_poisoned_cell()
    request.getfixturevalue("older_schema")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE lab_trial SET input_tokens = 9223372036854775807, cost = 'NaN', duration_ms = 1.7e308")
        cursor.execute("UPDATE lab_cell SET cost = 'NaN', p50_ms = 1e300, p95_ms = 'Infinity', stale = false")

    call_command("migrate", "lab", verbosity=0)

    cell.refresh_from_db()
    assert (cell.cost, cell.p50_ms, cell.p95_ms, cell.stale) == (None, None, None, True)
    recompute_stale_cells()
    cell.refresh_from_db()
    assert (cell.passed, cell.input_tokens, cell.cost, cell.compute_error) == (2, 0, None, "")
