"""Rows with which schedules of one kind begin: kept in a schema and written before each schedule."""

from django.db import connection
from psycopg import sql

_KEPT_TABLES = {"django_content_type", "django_migrations", "auth_permission"}
_WRITTEN_TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
ORDER BY relname
"""
# Foreign keys and triggers are off. Commits need not wait for the disk, since these rows are not what is tested.
_BEGINNING = sql.SQL("SET LOCAL session_replication_role = replica; SET LOCAL synchronous_commit = off; ")


class PreparedRows:
    """Rows of one kind.

    Args:
        name: name of the schema that keeps them; an existing one is deleted.
    """

    def __init__(self, name: str) -> None:
        self._schema = sql.Identifier(name)
        self._tables: list[str] = []
        self.drop()
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("CREATE SCHEMA {}").format(self._schema))

    def drop(self) -> None:
        """Delete the schema and the rows in it."""
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(self._schema))

    def keep(self) -> None:
        """Copy the rows that all tables have now to the schema."""
        for table in _list_written_tables():
            name = sql.Identifier(table)
            copy = sql.SQL("CREATE TABLE {0}.{1} AS TABLE public.{1}").format(self._schema, name)
            with connection.cursor() as cursor:
                cursor.execute(copy)
                if cursor.rowcount:
                    self._tables.append(table)

    def write(self) -> None:
        """Replace the rows of all tables by those in the schema. Call it in a transaction."""
        insert = sql.SQL("INSERT INTO public.{1} SELECT * FROM {0}.{1}")
        inserts = [insert.format(self._schema, sql.Identifier(table)) for table in self._tables]
        _run([*_build_deletions(), *inserts])


def empty_tables() -> None:
    """Delete all rows except those that Django wrote in a migration. Call it in a transaction."""
    _run(_build_deletions())


def _run(statements: list[sql.Composed]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_BEGINNING + sql.SQL("; ").join(statements))


def _build_deletions() -> list[sql.Composed]:
    return [sql.SQL("DELETE FROM public.{}").format(sql.Identifier(table)) for table in _list_written_tables()]


def _list_written_tables() -> list[str]:
    """Return the tables that have had a row since they were created, without those that are kept."""
    with connection.cursor() as cursor:
        cursor.execute(_WRITTEN_TABLES, ["public"])
        return [table for (table,) in cursor.fetchall() if table not in _KEPT_TABLES]
