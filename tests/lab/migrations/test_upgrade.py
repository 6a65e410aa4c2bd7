"""Rows in every table are upgraded from the last three migrations; `make check-long` does it from all of them."""

import pytest
from django.core.management import call_command

from tests.lab.migrations.upgrade import check_rows, list_migrations, upgrade_with_rows, use_copied_database

pytestmark = pytest.mark.django_db(transaction=True)
LAST = 3


def test_rows_of_the_last_three_migrations_are_upgraded() -> None:
    names = list_migrations()
    with use_copied_database():
        call_command("migrate", "lab", names[-LAST - 1], verbosity=0)
        made = upgrade_with_rows(names[-LAST - 1 : -1])
        assert made["Trial"] == made["StepBody"] == LAST
        check_rows(made)
