"""A database that got rows in every table after each migration is upgraded to the newest one."""

import pytest

from tests.lab.migrations.upgrade import check_rows, list_migrations, upgrade_with_rows, use_copied_database

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]


def test_rows_of_every_migration_are_upgraded() -> None:
    names = list_migrations()
    with use_copied_database(empty=True):
        made = upgrade_with_rows(names[:-1])
        assert made["Trial"] == len(names) - 1
        check_rows(made)
