"""Insert the planned trials of a run with one statement, whatever their number."""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Field

from toolbench.lab.models import Trial
from toolbench.lab.sql import statement


def queue_trials(trials: Sequence[Trial]) -> None:
    """Insert trials as `bulk_create` would; they get no ids. No two trials of a run have the same position."""
    if not trials:
        return
    columns = {
        field: [field.pre_save(trial, add=True) for trial in trials]
        for field in Trial._meta.concrete_fields
        if not field.primary_key
    }
    same = {
        field: values[0]
        for field, values in columns.items()
        if field.name != "position" and values.count(values[0]) == len(values)
    }
    differing = {field: values for field, values in columns.items() if field not in same}
    given = ", ".join(
        f"%s::{_get_column_type(field)}" if field in same else f"row.{_quote_column(field)}" for field in columns
    )
    arrays = ", ".join(f"%s::{_get_column_type(field)}[]" for field in differing)
    insert = statement(
        "worker/queue_trials",
        columns=", ".join(map(_quote_column, columns)),
        values=given,
        arrays=arrays,
        differing=", ".join(map(_quote_column, differing)),
    )
    constants = [field.get_db_prep_save(value, connection) for field, value in same.items()]
    lists = [[field.get_db_prep_save(value, connection) for value in values] for field, values in differing.items()]
    with connection.cursor() as cursor:
        cursor.execute(insert, [*constants, *lists])


def _get_column_type(field: "Field[Any, Any]") -> str:
    kind = field.db_type(connection)
    assert kind is not None
    return kind


def _quote_column(field: "Field[Any, Any]") -> str:
    return f'"{field.column}"'
