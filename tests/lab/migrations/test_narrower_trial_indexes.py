"""Indexes of trials and steps are replaced without blocking those who read or write the tables."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db(transaction=True)

STEP_INDEX = "lab_step_trial_id_10eedc5c"


def has_step_index() -> bool:
    """Return whether steps have the index of their foreign key alone."""
    with connection.cursor() as cursor:
        return STEP_INDEX in connection.introspection.get_constraints(cursor, "lab_step")


@pytest.fixture
def older_schema() -> Iterator[None]:
    """Migrate to the schema before migration 0049, and to the newest one after the test."""
    call_command("migrate", "lab", "0048", verbosity=0)
    yield
    call_command("migrate", "lab", verbosity=0)


def test_migration_0049_replaces_indexes_concurrently(older_schema: None) -> None:
    assert has_step_index()
    with CaptureQueriesContext(connection) as captured:
        call_command("migrate", "lab", "0049", verbosity=0)
    statements = [query["sql"] for query in captured.captured_queries if " INDEX " in query["sql"]]
    assert len(statements) >= 10
    assert [sql for sql in statements if "CONCURRENTLY" not in sql] == []
    assert not has_step_index()
