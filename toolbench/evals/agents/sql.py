"""Checks of an SQL query: sqlglot parses it, and SQLite runs it read-only on a few rows in memory."""

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
MAX_EXPANDED_NODES = 5000  # of the syntax tree in which a copy of its definition replaces each name
MAX_PROGRESS_CALLS = 200  # one call per 1,000 instructions of SQLite's virtual machine
MAX_VALUE_BYTES = 100_000
MAX_ROWS = 1000
READ_ACTIONS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
# Besides its own errors, sqlglot raises others, for instance AssertionError for `SELECT * GROUP BY 1`.
_QUERY_ERRORS = (SqlglotError, RecursionError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
WRITE_EXPRESSIONS = (exp.Into, exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Drop, exp.Command)


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table with its rows.

    Attributes:
        columns: The SQL type of each column, by name.
        rows: The values of each row, in the order of the columns.
    """

    columns: Mapping[str, str]
    rows: tuple[tuple[Any, ...], ...]


SqlTables = Mapping[str, SqlTable]  # tables by name


class _QueryError(Exception):
    """A query that fails a check; the message gives the reason."""


def build_query_checks(query: str, tables: SqlTables, reference: str) -> tuple[Check, ...]:
    """Return the checks of a query, in order: one SELECT, known tables, known columns, right answer.

    After a check that fails, all later ones fail with the same detail.

    Args:
        query: The SQL of the query.
        tables: The tables by their names in lower case.
        reference: A query that is known to be right.
    """
    names = (
        "the query is one SELECT statement",
        "the tables of the query exist",
        "the columns of the query exist",
        "the result of the query is right",
    )
    steps = (_check_select, _check_tables, _check_columns, _check_answer)
    checks: list[Check] = []
    failure = ""
    for name, step in zip(names, steps, strict=True):
        if not failure:
            try:
                step(query, tables, reference)
            except _QueryError as error:
                failure = str(error)
        checks.append(Check(f"sql: {name}", not failure, failure))
    return tuple(checks)


def list_tables(query: str) -> tuple[str, ...]:
    """Return the tables that a query reads, in lower case, sorted; empty if it is not one SELECT statement."""
    try:
        return tuple(sorted(_list_table_names(_parse_query(query))))
    except _QueryError:
        return ()


def _parse_query(query: str) -> exp.Expr:
    if len(query) > MAX_QUERY_CHARACTERS:
        raise _QueryError(f"the query is longer than {MAX_QUERY_CHARACTERS} characters")
    try:
        statements = [statement for statement in sqlglot.parse(query) if statement is not None]
    except _QUERY_ERRORS as error:
        raise _QueryError(f"the query cannot be read: {_describe_error(error)[:120]}") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query) or statements[0].find(*WRITE_EXPRESSIONS):
        raise _QueryError("the query is not one SELECT statement")
    if _measure_expansion(statements[0]) > MAX_EXPANDED_NODES:
        raise _QueryError("the query repeats its aliases and named subqueries too often")
    return statements[0]


def _measure_expansion(tree: exp.Expr) -> int:
    """Return the number of nodes of a query in which a copy of its definition replaces each name.

    SQLite copies a common table expression wherever it is used, and sqlglot a column alias. If each definition uses the
    previous one twice, the number grows exponentially.
    """
    definition_sizes: dict[tuple[type[exp.Expr], str], int] = {}
    sizes_by_node_id: dict[int, int] = {}
    for node in _list_in_post_order(tree):
        size = 1 + sum(sizes_by_node_id[id(child)] for child in node.iter_expressions())
        if isinstance(node, exp.Table) or (isinstance(node, exp.Column) and not node.table):
            size += definition_sizes.get((type(node), node.name.lower()), 0)
        sizes_by_node_id[id(node)] = size
        if isinstance(node, (exp.CTE, exp.Alias)):
            key = (exp.Table if isinstance(node, exp.CTE) else exp.Column, node.alias.lower())
            definition_sizes[key] = max(size, definition_sizes.get(key, 0))
    return sizes_by_node_id[id(tree)]


def _list_in_post_order(tree: exp.Expr) -> list[exp.Expr]:
    """Return the nodes of a syntax tree, each after its children, and WITH before the rest of its query."""
    nodes, stack = [], [tree]
    while stack:
        node = stack.pop()
        nodes.append(node)
        stack += sorted(node.iter_expressions(), key=lambda child: not isinstance(child, exp.With))
    return nodes[::-1]


def _describe_error(error: Exception) -> str:
    """Return the first line of an exception's message, or the name of its type if the message is empty."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _list_table_names(tree: exp.Expr) -> set[str]:
    cte_names = {table.alias_or_name.lower() for table in tree.find_all(exp.CTE)}
    return {table.name.lower() for table in tree.find_all(exp.Table)} - cte_names


def _check_select(query: str, tables: SqlTables, reference: str) -> None:
    _parse_query(query)


def _check_tables(query: str, tables: SqlTables, reference: str) -> None:
    unknown = sorted(_list_table_names(_parse_query(query)) - set(tables))
    if unknown:
        raise _QueryError(f"there is no table {', '.join(unknown)}")


def _check_columns(query: str, tables: SqlTables, reference: str) -> None:
    schema: dict[str, object] = {name: dict(table.columns) for name, table in tables.items()}
    try:
        qualify(_parse_query(query), schema=schema, quote_identifiers=False)
    except _QUERY_ERRORS as error:
        raise _QueryError(_describe_error(error)[:160]) from error


def _check_answer(query: str, tables: SqlTables, reference: str) -> None:
    """Compare the results of the query and the reference: on all rows, and three times without a third of them.

    The four comparisons make it unlikely that a wrong query gives the right rows by chance.

    Raises:
        _QueryError: The query cannot be run, or its rows differ.
    """
    for omitted in (None, 0, 1, 2):
        subset = {name: SqlTable(table.columns, _omit_third(table.rows, omitted)) for name, table in tables.items()}
        expected, result = _run_query(reference, subset), _run_query(query, subset)
        if result != expected:
            raise _QueryError(f"the query gives {render_short(result[:3])}; {render_short(expected[:3])} is right")


def _omit_third(rows: Sequence[tuple[Any, ...]], omitted: int | None) -> tuple[tuple[Any, ...], ...]:
    """Return the rows without every third one, from the index `omitted` on; all rows if it is None."""
    return tuple(row for index, row in enumerate(rows) if index % 3 != omitted)


def _run_query(query: str, tables: SqlTables) -> list[list[Any]]:
    """Return the first MAX_ROWS rows of the query's result, sorted, because the order of the rows is not compared.

    The query runs in memory and read-only. The number of instructions and the size of values are limited.

    Raises:
        _QueryError: The query cannot be run, or exceeds a limit.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, table in tables.items():
            columns = ", ".join(f"{column} {sql_type}" for column, sql_type in table.columns.items())
            connection.execute(f"CREATE TABLE {name} ({columns})")
            placeholders = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {name} VALUES ({placeholders})", table.rows)
        progress_calls = iter(range(MAX_PROGRESS_CALLS))
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in READ_ACTIONS else sqlite3.SQLITE_DENY
        )
        connection.set_progress_handler(lambda: int(next(progress_calls, None) is None), 1000)
        try:
            rows = connection.execute(_parse_query(query).sql(dialect="sqlite")).fetchmany(MAX_ROWS)
        except (sqlite3.Error, sqlite3.Warning, *_QUERY_ERRORS) as error:
            raise _QueryError(f"the query cannot be run: {str(error)[:120]}") from error
    return sorted(([_normalise_value(value) for value in row] for row in rows), key=repr)


def _normalise_value(value: Any) -> Any:
    """Return a float without a fraction as an integer, bytes as a literal of SQL, and any other value unchanged."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return int(value) if isinstance(value, float) and value.is_integer() else value
