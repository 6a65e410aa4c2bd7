"""Upgrade of an older database: cells of servers at private addresses are recomputed, since their cost is 0 now."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command

from tests.factories import make_cell, make_config, make_model, make_provider, make_run
from toolbench.lab.models import Cell

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older_schema() -> Iterator[None]:
    """Migrate to the schema before private addresses were free, and to the newest one after the test."""
    call_command("migrate", "lab", "0052", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def make_fresh_cell(name: str, base_url: str) -> Cell:
    model = make_model(provider=make_provider(name, base_url=base_url))
    return make_cell(make_config(make_run(), model), stale=False)


def test_migrate_marks_only_cells_of_private_addresses_stale(request: pytest.FixtureRequest) -> None:
    private = make_fresh_cell("Own", "http://192.168.1.20:8000")
    public = make_fresh_cell("Elsewhere", "https://example.test/api")
    request.getfixturevalue("older_schema")

    call_command("migrate", "lab", "0053", verbosity=0)

    assert dict(Cell.objects.values_list("pk", "stale")) == {private.pk: True, public.pk: False}
