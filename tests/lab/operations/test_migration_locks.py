"""Warnings before migrations that lock a large table."""

import io

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.core.management import call_command
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader

from tests.factories import make_cell, make_config, make_run, make_trial
from toolbench.lab.operations import migration_locks
from toolbench.lab.operations.migration_locks import TableSize, describe_plan, find_long_locks

LARGE = {"lab_trial": TableSize(1_000_000, 1_200_000_000), "lab_run": TableSize(20, 8_192)}


@pytest.mark.parametrize(
    ("statement", "blocks_reading"),
    [
        ('CREATE INDEX "x" ON "lab_trial" ("a")', False),
        ('CREATE UNIQUE INDEX "x" ON "lab_trial" ("a") WHERE "b"', False),
        ('ALTER TABLE "lab_trial" ADD CONSTRAINT "x" CHECK ("a" > 0)', True),
        ('ALTER TABLE "lab_trial" ALTER COLUMN "a" TYPE bigint USING "a"::bigint', True),
        ('ALTER TABLE "lab_trial" ALTER COLUMN "a" SET NOT NULL', True),
        ("UPDATE lab_trial SET a = 1", False),
    ],
)
def test_find_long_locks_finds_statement_on_large_table(statement: str, blocks_reading: bool) -> None:
    (lock,) = find_long_locks([statement], LARGE)
    assert (lock.table, lock.blocks_reading) == ("lab_trial", blocks_reading)
    assert lock.seconds > 1


@pytest.mark.parametrize(
    "statement",
    [
        'CREATE INDEX CONCURRENTLY "x" ON "lab_trial" ("a")',
        'ALTER TABLE "lab_trial" ADD COLUMN "a" varchar(80) DEFAULT \'\' NOT NULL',
        'ALTER TABLE "lab_trial" ALTER COLUMN "a" DROP DEFAULT',
        "UPDATE lab_run SET a = 1",
        'CREATE INDEX "x" ON "lab_new" ("a")',
    ],
)
def test_find_long_locks_ignores_quick_statement(statement: str) -> None:
    assert find_long_locks([statement], LARGE) == ()


def test_find_long_locks_keeps_exclusive_lock_until_end_of_migration() -> None:
    statements = ['ALTER TABLE "lab_trial" ADD COLUMN "a" int NULL', "UPDATE lab_trial SET a = 1"]
    (lock,) = find_long_locks(statements, LARGE)
    assert lock.sentence == "lab_trial (1,000,000 rows, 1.1 GB): pages that read or change it wait for about 60 s."


@pytest.mark.django_db(transaction=True)
def test_describe_plan_names_locked_tables_and_data_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    make_trial(make_cell(make_config(make_run())))
    index = models.Index(fields=["sentence"], name="slow")

    class Slow(migrations.Migration):
        dependencies = MigrationLoader(connection).graph.leaf_nodes("lab")
        operations = [migrations.AddIndex("trial", index), migrations.RunPython(migrations.RunPython.noop)]

    class Quick(migrations.Migration):
        atomic = False
        dependencies = Slow.dependencies
        operations = [AddIndexConcurrently("trial", index)]

    plan = [Slow("9998_slow", "lab"), Quick("9999_quick", "lab")]
    monkeypatch.setattr(migration_locks, "_read_sizes", lambda: LARGE)
    monkeypatch.setattr(MigrationLoader, "collect_sql", collect_unregistered)
    assert list(describe_plan(plan)) == [
        "9998_slow locks lab_trial (1,000,000 rows, 1.1 GB): workers and pages that change it wait for about 12 s.",
        "9998_slow runs code on stored rows; how long it takes cannot be estimated.",
    ]


def collect_unregistered(loader: MigrationLoader, plan: list[tuple[migrations.Migration, bool]]) -> list[str]:
    """Collect SQL as Django does, for migrations without a file: on the state after all migrations."""
    statements: list[str] = []
    for migration, _ in plan:
        with connection.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
            migration.apply(loader.project_state(), editor, collect_sql=True)
        statements += editor.collected_sql or []
    return statements


@pytest.mark.django_db(transaction=True)
def test_migrate_command_on_current_database_prints_no_warning() -> None:
    output = io.StringIO()
    call_command("migrate", stdout=output)
    assert "locks" not in output.getvalue()
