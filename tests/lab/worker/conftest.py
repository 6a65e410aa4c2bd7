"""A fixture that makes the database refuse chosen outcomes."""

from collections.abc import Callable, Iterator

import pytest
from django.db import connection

_REFUSE_TRIGGER_SQL = """
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$;
CREATE OR REPLACE TRIGGER refuse BEFORE UPDATE ON lab_trial FOR EACH ROW
    WHEN (NEW.sentence = 'refused') EXECUTE FUNCTION refuse();
"""


@pytest.fixture
def refuse() -> Iterator[Callable[[str], None]]:
    """Yield a function that makes the database refuse, with an SQLSTATE, outcomes whose sentence is "refused"."""

    def install(state: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_REFUSE_TRIGGER_SQL.format(state=state))

    yield install
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION IF EXISTS refuse CASCADE")
