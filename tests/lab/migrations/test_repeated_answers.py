"""Upgrade of an older database: cells that seem to repeat answers are recounted."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Cell

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older_schema() -> Iterator[None]:
    """Migrate to the schema before repeated answers were counted, and to the newest one after the test."""
    call_command("migrate", "lab", "0056", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def make_counted_cell(*hashes: str, deterministic: bool = True) -> Cell:
    cell = make_cell(make_config(make_run()), deterministic=deterministic)
    for answer_hash in hashes:
        make_trial(cell, answer_hash=answer_hash)
    recompute_stale_cells()
    return cell


def is_withheld(cell: Cell) -> bool:
    cell.refresh_from_db()
    return tally_cells([cell]).compute_answered_success().withheld


def test_migrate_recounts_cells_that_seem_to_repeat_answers(request: pytest.FixtureRequest) -> None:
    repeating, refused = make_counted_cell("a", "a"), make_counted_cell("a", "")
    others = [make_counted_cell("a", "b"), make_counted_cell("a", "a", deterministic=False)]
    request.getfixturevalue("older_schema")

    call_command("migrate", "lab", "0058", verbosity=0)

    is_stale = {cell.pk: cell in (repeating, refused) for cell in (repeating, refused, *others)}
    assert dict(Cell.objects.values_list("pk", "stale")) == is_stale
    call_command("migrate", "lab", verbosity=0)
    assert (is_withheld(repeating), is_withheld(refused)) == (True, True)
    recompute_stale_cells()
    assert (is_withheld(repeating), is_withheld(refused)) == (True, False)
