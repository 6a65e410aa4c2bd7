"""Warnings before migrations that lock a large table for longer than a second.

Unless `atomic` is False, a migration runs in one transaction, so each lock is held until the migration ends.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from django.apps import AppConfig
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader

from toolbench.lab.operations.storage_space import format_bytes

MAX_LOCK_SECONDS = 1.0
NO_SQL = "THIS OPERATION CANNOT BE WRITTEN AS SQL"  # in the comment that Django writes for an operation in Python
# Megabytes of a table per second, as measured with 400,000 rows (docs/operations.md).
_READ_RATE, _INDEX_RATE, _WRITE_RATE = 300.0, 100.0, 20.0
_TABLE = r'"?(lab_\w+)"?'
_SELECT_SIZES = """
SELECT relname, greatest(reltuples, 0)::bigint, pg_table_size(oid) FROM pg_class
WHERE relkind = 'r' AND relname = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class StatementKind:
    """A kind of statement that works on all rows of a table.

    Attributes:
        pattern: matches the statement; its group is the table.
        rate: megabytes of the table that the statement works on per second.
        blocks_reading: whether pages that only read the table wait, too.
    """

    pattern: re.Pattern[str]
    rate: float
    blocks_reading: bool


STATEMENT_KINDS = (
    StatementKind(re.compile(rf"CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY).*? ON {_TABLE}", re.S), _INDEX_RATE, False),
    StatementKind(re.compile(rf"ALTER TABLE {_TABLE} ADD CONSTRAINT", re.S), _INDEX_RATE, True),
    StatementKind(re.compile(rf"ALTER TABLE {_TABLE} ALTER COLUMN \S+ TYPE", re.S), _WRITE_RATE, True),
    StatementKind(re.compile(rf"ALTER TABLE {_TABLE} ALTER COLUMN \S+ SET NOT NULL", re.S), _READ_RATE, True),
    StatementKind(re.compile(rf"(?:UPDATE|DELETE FROM)\s+{_TABLE}"), _WRITE_RATE, False),
)
_EXCLUSIVE = re.compile(rf"ALTER TABLE {_TABLE}")  # such a statement blocks reading until the end of the migration


@dataclass(frozen=True, slots=True)
class TableSize:
    """Size of a table.

    Attributes:
        rows: number of rows, as PostgreSQL estimates it.
        data_bytes: bytes without indexes.
    """

    rows: int
    data_bytes: int


@dataclass(frozen=True, slots=True)
class TableLock:
    """A lock that a migration holds on a table for a long time.

    Attributes:
        seconds: estimated duration of the statements that work on all rows of the table.
        blocks_reading: whether pages that only read the table wait, too.
    """

    table: str
    size: TableSize
    seconds: float
    blocks_reading: bool

    @property
    def sentence(self) -> str:
        """The sentence that says which processes wait, and for how long."""
        size = format_bytes(self.size.data_bytes)
        blocked = "pages that read or change it" if self.blocks_reading else "workers and pages that change it"
        return f"{self.table} ({self.size.rows:,} rows, {size}): {blocked} wait for about {self.seconds:.0f} s."


def find_long_locks(statements: Sequence[str], sizes: dict[str, TableSize]) -> tuple[TableLock, ...]:
    """Return the locks that a migration probably holds for longer than MAX_LOCK_SECONDS, sorted by table.

    Args:
        statements: the SQL statements of the migration.
        sizes: sizes of the existing tables, by name.
    """
    seconds: dict[str, float] = {}
    unreadable_tables = {match[1] for statement in statements for match in _EXCLUSIVE.finditer(statement)}
    for statement in statements:
        for kind in STATEMENT_KINDS:
            for match in kind.pattern.finditer(statement):
                table = match[1]
                if table in sizes:
                    seconds[table] = seconds.get(table, 0.0) + sizes[table].data_bytes / 1e6 / kind.rate
                    unreadable_tables |= {table} if kind.blocks_reading else set()
    return tuple(
        TableLock(table, sizes[table], duration, table in unreadable_tables)
        for table, duration in sorted(seconds.items())
        if duration > MAX_LOCK_SECONDS
    )


def print_long_locks(
    app_config: AppConfig, plan: Sequence[tuple[Migration, bool]], using: str = DEFAULT_DB_ALIAS, **options: Any
) -> None:
    """Print the lines of `describe_plan` for the migrations to apply. Django calls it as receiver of `pre_migrate`."""
    stdout: TextIO | None = options.get("stdout")
    if using != DEFAULT_DB_ALIAS or stdout is None or not options.get("verbosity"):
        return
    for line in describe_plan([migration for migration, backwards in plan if not backwards]):
        stdout.write(f"{line}\n")


def describe_plan(migrations: Sequence[Migration]) -> Iterator[str]:
    """Yield a line for each long lock of a migration, and for each migration whose duration cannot be estimated.

    Only migrations of the app `lab` are checked. Nothing is yielded while the tables are empty.
    """
    sizes = _read_sizes()
    if not any(table.data_bytes for table in sizes.values()):
        return
    loader = MigrationLoader(connection, replace_migrations=False)
    for migration in migrations:
        if migration.app_label != "lab":
            continue
        try:
            statements = loader.collect_sql([(migration, False)])
        except (ValueError, DatabaseError):
            yield f"{migration.name} needs a migration that is not applied yet; how long it takes cannot be estimated."
            continue
        for lock in find_long_locks(statements, sizes):
            yield f"{migration.name} locks {lock.sentence}"
        if any(NO_SQL in statement for statement in statements):
            yield f"{migration.name} runs code on stored rows; how long it takes cannot be estimated."


def _read_sizes() -> dict[str, TableSize]:
    tables = connection.introspection.table_names()
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_SIZES, [[table for table in tables if table.startswith("lab_")]])
        return {name: TableSize(rows, size) for name, rows, size in cursor.fetchall()}
