"""An older database is brought up to date: cells of own servers are counted again, since their cost is 0 now."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command

from tests.factories import make_cell, make_config, make_model, make_provider, make_run
from toolbench.lab.models import Cell

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older() -> Iterator[None]:
    """The schema before own servers cost nothing; whatever happens, the newest one comes back."""
    call_command("migrate", "lab", "0052", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def make_fresh_cell(name: str, base_url: str) -> Cell:
    model = make_model(provider=make_provider(name, base_url=base_url))
    return make_cell(make_config(make_run(), model), stale=False)


def test_upgrade_marks_only_cells_of_own_servers_stale(older: None) -> None:
    own = make_fresh_cell("Own", "http://192.168.1.20:8000")
    elsewhere = make_fresh_cell("Elsewhere", "https://example.test/api")

    call_command("migrate", "lab", verbosity=0)

    own.refresh_from_db()
    elsewhere.refresh_from_db()
    assert (own.stale, elsewhere.stale) == (True, False)
