from collections.abc import Iterator

import pytest
from django.db import connection

from benchmarks.crashes.prepared_rows import PreparedRows, empty_tables
from tests.factories import make_cell, make_config, make_model, make_run, make_trial
from toolbench.lab.models import Model, Provider, Run, Trial

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> Iterator[PreparedRows]:
    rows = PreparedRows("prepared rows")
    yield rows
    rows.drop()


def test_prepared_rows_write_restores_kept_rows_and_deletes_others(rows: PreparedRows) -> None:
    trial = make_trial(make_cell(make_config(make_run())), "queued")
    before = Trial.objects.values().get()
    rows.keep()
    Trial.objects.update(state="running", requests=3)
    Run.objects.update(title="Other")
    Model.objects.create(provider=Provider.objects.create(name="Other"), name="other")
    rows.write()
    assert Trial.objects.values().get() == before
    assert Run.objects.get(pk=trial.run_id).title != "Other"
    assert not Provider.objects.filter(name="Other").exists()


def test_empty_tables_keeps_rows_of_migrations() -> None:
    make_model()
    empty_tables()
    assert not Provider.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_migrations")
        assert cursor.fetchone()[0] > 0
