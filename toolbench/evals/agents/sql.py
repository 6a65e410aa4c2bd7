"""Judging a query: sqlglot parses it, and SQLite runs it on a few stored rows in memory, read-only."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from toolbench.evals.judging.messages import render_short
from toolbench.evals.types import Check

MAX_QUERY_CHARACTERS = 2000
MAX_PROGRESS_CALLS = 200  # one call per 1,000 instructions of SQLite's virtual machine
MAX_VALUE_BYTES = 100_000  # of one value
MAX_ROWS = 1000
READ_ACTIONS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
WRITE_EXPRESSIONS = (exp.Into, exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Drop, exp.Command)


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table: `columns` has the SQL type of each column by name."""

    columns: Mapping[str, str]
    rows: tuple[tuple[Any, ...], ...]


SqlTables = Mapping[str, SqlTable]


class _QueryError(Exception):
    """A query that cannot be parsed or run; the message says why."""


def build_query_checks(text: str, tables: SqlTables, reference: str) -> tuple[Check, ...]:
    """Return the checks of a query, in order: one SELECT, known tables, known columns, right answer.

    A check that cannot run because an earlier one failed fails too.

    Args:
        text: The query.
        tables: The tables by name.
        reference: A query that is known to be right.
    """
    names = ("is one SELECT statement", "the tables of the query exist", "the columns of the query exist", "answers")
    steps = (_check_select, _check_tables, _check_columns, _check_answer)
    checks: list[Check] = []
    failed = ""
    for name, step in zip(names, steps, strict=True):
        if not failed:
            try:
                step(text, tables, reference)
            except _QueryError as error:
                failed = str(error)
        checks.append(Check(f"sql: {name}", not failed, failed))
    return tuple(checks)


def list_tables(text: str) -> tuple[str, ...]:
    """Return the tables that a query reads, sorted; () if it cannot be parsed."""
    try:
        return tuple(sorted(_list_table_names(_parse_query(text))))
    except _QueryError:
        return ()


def _parse_query(text: str) -> exp.Expr:
    if len(text) > MAX_QUERY_CHARACTERS:
        raise _QueryError(f"the query is longer than {MAX_QUERY_CHARACTERS} characters")
    try:
        found = [statement for statement in sqlglot.parse(text) if statement is not None]
    except (SqlglotError, RecursionError) as error:
        raise _QueryError(f"the query cannot be read: {str(error).splitlines()[0][:120]}") from error
    if len(found) != 1 or not isinstance(found[0], exp.Query) or found[0].find(*WRITE_EXPRESSIONS):
        raise _QueryError("the query is not one SELECT statement")
    return found[0]


def _list_table_names(tree: exp.Expr) -> set[str]:
    made = {table.alias_or_name.lower() for table in tree.find_all(exp.CTE)}
    return {table.name.lower() for table in tree.find_all(exp.Table)} - made


def _check_select(text: str, tables: SqlTables, reference: str) -> None:
    _parse_query(text)


def _check_tables(text: str, tables: SqlTables, reference: str) -> None:
    unknown = sorted(_list_table_names(_parse_query(text)) - set(tables))
    if unknown:
        raise _QueryError(f"there is no table {', '.join(unknown)}")


def _check_columns(text: str, tables: SqlTables, reference: str) -> None:
    schema: dict[str, object] = {name: dict(table.columns) for name, table in tables.items()}
    try:
        qualify(_parse_query(text), schema=schema, quote_identifiers=False)
    except (SqlglotError, RecursionError) as error:
        raise _QueryError(str(error).splitlines()[0][:160]) from error


def _check_answer(text: str, tables: SqlTables, reference: str) -> None:
    """Compare the answers on all rows, and on each two thirds of them.

    An answer that is right by chance is not right four times.

    Raises:
        _QueryError: The query cannot be run, or an answer differs.
    """
    for left_out in (None, 0, 1, 2):
        kept = {name: SqlTable(table.columns, _drop_third(table.rows, left_out)) for name, table in tables.items()}
        expected, given = _run_query(reference, kept), _run_query(text, kept)
        if given != expected:
            raise _QueryError(f"the query gives {render_short(given[:3])}; {render_short(expected[:3])} is right")


def _drop_third(rows: Sequence[tuple[Any, ...]], left_out: int | None) -> tuple[tuple[Any, ...], ...]:
    return tuple(row for place, row in enumerate(rows) if place % 3 != left_out)


def _run_query(text: str, tables: SqlTables) -> list[list[Any]]:
    """Return the query's rows, sorted. It runs in memory, read-only, with limits of time and size.

    Raises:
        _QueryError: The query cannot be run.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, table in tables.items():
            columns = ", ".join(f"{column} {kind}" for column, kind in table.columns.items())
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", table.rows)
        steps = iter(range(MAX_PROGRESS_CALLS))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in READ_ACTIONS else sqlite3.SQLITE_DENY
        )
        connection.set_progress_handler(lambda: int(next(steps, None) is None), 1000)
        try:
            found = connection.execute(_parse_query(text).sql(dialect="sqlite")).fetchmany(MAX_ROWS)
        except (sqlite3.Error, SqlglotError, RecursionError) as error:
            raise _QueryError(f"the query cannot be run: {str(error)[:120]}") from error
    return sorted(([_normalise_number(value) for value in row] for row in found), key=repr)


def _normalise_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
