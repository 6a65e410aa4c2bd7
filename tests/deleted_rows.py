"""Rows that are deleted while a request is answered."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.models import Model


@contextmanager
def delete_before_lock(row: Model) -> Iterator[None]:
    """Delete the row just before the first statement that locks rows, as another request may do meanwhile."""
    is_deleted = False

    def execute_after_deletion(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        nonlocal is_deleted
        if not is_deleted and "FOR UPDATE" in sql:
            is_deleted = True
            type(row)._default_manager.filter(pk=row.pk).delete()
        return execute(sql, *rest)

    with connection.execute_wrapper(execute_after_deletion):
        yield
    assert is_deleted
