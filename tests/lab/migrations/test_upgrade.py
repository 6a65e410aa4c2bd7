"""Rows in every table are upgraded from the last three migrations; `make check-long` does it from all of them."""

import pytest
from django.core.management import call_command

from tests.lab.migrations.upgrade import check_rows, list_migrations, upgrade_with_rows, use_copied_database

pytestmark = pytest.mark.django_db(transaction=True)
MIGRATION_COUNT = 3


def test_migrate_keeps_rows_of_the_last_three_migrations() -> None:
    names = list_migrations()
    with use_copied_database():
        call_command("migrate", "lab", names[-MIGRATION_COUNT - 1], verbosity=0)
        created = upgrade_with_rows(names[-MIGRATION_COUNT - 1 : -1])
        assert created["Trial"] == created["StepBody"] == MIGRATION_COUNT
        check_rows(created)
