"""Upgrade of an older database: all cells are recounted, since their sums are those of tried trials now."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command

from tests.factories import make_cell, make_config, make_run, make_trials, recompute_stale_cells

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older_schema() -> Iterator[None]:
    """Migrate to the schema before tokens of tried trials were counted, and to the newest one after the test."""
    call_command("migrate", "lab", "0060_name_of_drafts", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def test_migrate_recounts_tokens_of_all_cells(request: pytest.FixtureRequest) -> None:
    cell = make_cell(make_config(make_run()))
    make_trials(cell, **{"pass": 1, "cancelled": 1})
    request.getfixturevalue("older_schema")

    call_command("migrate", "lab", verbosity=0)

    cell.refresh_from_db()
    assert (cell.stale, cell.tried_tokens) == (True, 0)
    recompute_stale_cells()
    cell.refresh_from_db()
    assert (cell.tried_tokens, cell.input_tokens + cell.output_tokens) == (460, 920)
