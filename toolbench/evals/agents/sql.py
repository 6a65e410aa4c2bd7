"""Judging a query: read by sqlglot, never trusted, then run on a few stored rows in memory."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from toolbench.evals.judging.messages import shown
from toolbench.evals.types import Check

LONGEST = 2000  # characters
MOST_STEPS = 200  # thousands of SQLite's own instructions
MOST_BYTES = 100_000  # of one value
MOST_ROWS = 1000
READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
CHANGING = (exp.Into, exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Drop, exp.Command)


@dataclass(frozen=True, slots=True)
class Table:
    """`columns` by name with their SQL type."""

    columns: Mapping[str, str]
    rows: tuple[tuple[Any, ...], ...]


Tables = Mapping[str, Table]


class _Wrong(Exception):
    """The query cannot be read or run; the text says why."""


def check_query(text: str, tables: Tables, reference: str) -> tuple[Check, ...]:
    """In this order: one SELECT, tables that exist, columns that exist, the answer of `reference`. A check that cannot
    be made because an earlier one failed fails too. `reference` has to be a good query."""
    names = ("is one SELECT statement", "the tables of the query exist", "the columns of the query exist", "answers")
    steps = (_is_select, _tables_exist, _columns_exist, _answers)
    checks: list[Check] = []
    failed = ""
    for name, step in zip(names, steps, strict=True):
        if not failed:
            try:
                step(text, tables, reference)
            except _Wrong as error:
                failed = str(error)
        checks.append(Check(f"sql: {name}", not failed, failed))
    return tuple(checks)


def tables_of(text: str) -> tuple[str, ...]:
    """The tables a query reads, sorted; nothing for one that cannot be read."""
    try:
        return tuple(sorted(_names(_read(text))))
    except _Wrong:
        return ()


def _read(text: str) -> exp.Expr:
    if len(text) > LONGEST:
        raise _Wrong(f"the query is longer than {LONGEST} characters")
    try:
        found = [one for one in sqlglot.parse(text) if one is not None]
    except (SqlglotError, RecursionError) as error:
        raise _Wrong(f"the query cannot be read: {str(error).splitlines()[0][:120]}") from error
    if len(found) != 1 or not isinstance(found[0], exp.Query) or found[0].find(*CHANGING):
        raise _Wrong("the query is not one SELECT statement")
    return found[0]


def _names(tree: exp.Expr) -> set[str]:
    made = {one.alias_or_name.lower() for one in tree.find_all(exp.CTE)}
    return {one.name.lower() for one in tree.find_all(exp.Table)} - made


def _is_select(text: str, tables: Tables, reference: str) -> None:
    _read(text)


def _tables_exist(text: str, tables: Tables, reference: str) -> None:
    unknown = sorted(_names(_read(text)) - set(tables))
    if unknown:
        raise _Wrong(f"there is no table {', '.join(unknown)}")


def _columns_exist(text: str, tables: Tables, reference: str) -> None:
    schema: dict[str, object] = {name: dict(table.columns) for name, table in tables.items()}
    try:
        qualify(_read(text), schema=schema, quote_identifiers=False)
    except (SqlglotError, RecursionError) as error:
        raise _Wrong(str(error).splitlines()[0][:160]) from error


def _answers(text: str, tables: Tables, reference: str) -> None:
    """On all rows, and on each two thirds of them: an answer that is right by luck is not right four times."""
    for left_out in (None, 0, 1, 2):
        kept = {name: Table(one.columns, _thinned(one.rows, left_out)) for name, one in tables.items()}
        wanted, given = _rows(reference, kept), _rows(text, kept)
        if given != wanted:
            raise _Wrong(f"the query gives {shown(given[:3])}; {shown(wanted[:3])} is right")


def _thinned(rows: Sequence[tuple[Any, ...]], left_out: int | None) -> tuple[tuple[Any, ...], ...]:
    return tuple(row for place, row in enumerate(rows) if place % 3 != left_out)


def _rows(text: str, tables: Tables) -> list[list[Any]]:
    """The query's rows, sorted: in memory, reading only, within bounds of time and size."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, table in tables.items():
            columns = ", ".join(f"{column} {kind}" for column, kind in table.columns.items())
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", table.rows)
        steps = iter(range(MOST_STEPS))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY)
        connection.set_progress_handler(lambda: int(next(steps, None) is None), 1000)
        try:
            found = connection.execute(_read(text).sql(dialect="sqlite")).fetchmany(MOST_ROWS)
        except (sqlite3.Error, SqlglotError, RecursionError) as error:
            raise _Wrong(f"the query cannot be run: {str(error)[:120]}") from error
    return sorted(([_plain(value) for value in row] for row in found), key=repr)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
