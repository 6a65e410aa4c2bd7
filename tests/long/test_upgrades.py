"""Upgrade of a database with rows in every table after each migration to the newest migration."""

import pytest

from tests.lab.migrations.upgrade import check_rows, list_migrations, upgrade_with_rows, use_copied_database

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]


def test_migrations_upgrade_rows_of_every_earlier_migration() -> None:
    names = list_migrations()
    with use_copied_database(empty=True):
        row_counts = upgrade_with_rows(names[:-1])
        assert row_counts["Trial"] == len(names) - 1
        check_rows(row_counts)
