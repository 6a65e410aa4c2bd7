"""Search texts that may lack names of tools are written anew after the upgrade, on a real database."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.utils import timezone

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from toolbench.lab.models import Trial
from toolbench.lab.traces.search_text import update_search_texts

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def older_schema() -> Iterator[None]:
    """Migrate to the schema before search texts began with names of tools, and to the newest one after the test."""
    call_command("migrate", "lab", "0060", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def test_migrate_marks_only_cut_and_removed_texts_stale(request: pytest.FixtureRequest) -> None:
    cell = make_cell(make_config(make_run()))
    _whole, cut, removed = (make_trial(cell) for _ in range(3))
    for ordinal in range(12):
        make_step(cut, kind="tool", ordinal=ordinal, tool_name="save", bodies={"request": b"x" * 400})
    update_search_texts()
    Trial.objects.filter(pk=removed.pk).update(bodies_removed_at=timezone.now())
    request.getfixturevalue("older_schema")

    call_command("migrate", "lab", verbosity=0)

    assert set(Trial.objects.filter(text_stale=True).values_list("pk", flat=True)) == {cut.pk, removed.pk}
