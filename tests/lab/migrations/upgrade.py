"""Upgrades of a database that has rows in every table, from any migration to the newest one."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any
from uuid import uuid4

import psycopg
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchVectorField
from django.core.management import call_command
from django.db import connection, models
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Func, Value
from psycopg import sql

from tests.environment import SOCKET_FOLDER

# Derived rows, which are not created here: a migration may delete them, since they are computed again.
DERIVED = {"CellPool", "CausePool", "PoolState", "RunChange"}
# Values that a check constraint requires.
CHECKED: dict[str, dict[str, Any]] = {
    "Schedule": {"every_hours": None, "hour_utc": 3},
    "LibraryVersion": {"preset": None, "model": None},
}


@contextmanager
def use_copied_database(*, empty: bool = False) -> Iterator[None]:
    """Connect to a copy of the test database, or to an empty one, which is dropped afterwards."""
    original = connection.settings_dict["NAME"]
    name = f"{original}_upgraded"
    connection.close()
    with psycopg.connect(host=str(SOCKET_FOLDER), user="postgres", dbname="postgres", autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        template = sql.Identifier("template0" if empty else str(original))
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), template))
        connection.settings_dict["NAME"] = name
        try:
            yield
        finally:
            connection.close()
            connection.settings_dict["NAME"] = original
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def list_migrations() -> list[str]:
    """Return the names of the migrations of the app lab, in order."""
    loader = MigrationExecutor(connection).loader
    (newest,) = loader.graph.leaf_nodes("lab")
    return [name for app, name in loader.graph.forwards_plan(newest) if app == "lab"]


def upgrade_with_rows(names: list[str]) -> dict[str, int]:
    """Migrate to each of these in turn, with one new row in every table after each.

    Returns:
        The number of rows created of each model that still exists.
    """
    created: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        call_command("migrate", "lab", name, verbosity=0)
        for model_name in fill_every_table(name, number):
            created[model_name] = created.get(model_name, 0) + 1
    call_command("migrate", verbosity=0)
    existing = {model.__name__ for model in apps.get_app_config("lab").get_models()}
    return {name: count for name, count in created.items() if name in existing}


def fill_every_table(name: str, number: int) -> list[str]:
    """Make one row of every model as of a migration; return the names of the models."""
    names = list_migrations()
    applied = [("lab", earlier) for earlier in names[: names.index(name) + 1]]
    state = MigrationExecutor(connection).loader.project_state(applied).apps
    user = state.get_model("auth", "User").objects.create(username=f"person {number}")
    rows: dict[str, Any] = {"User": user}
    models_of_lab = (model for model in state.get_models() if model._meta.app_label == "lab")
    waiting = [model for model in models_of_lab if model.__name__ not in DERIVED]
    while waiting:
        ready = [model for model in waiting if _list_required(model) <= rows.keys()]
        assert ready, [model.__name__ for model in waiting]
        for model in ready:
            rows[model.__name__] = model._default_manager.create(**_build_values(model, rows, number))
            waiting.remove(model)
    return [model_name for model_name in rows if model_name != "User"]


def _list_required(model: Any) -> set[str]:
    fields = [field for field in model._meta.concrete_fields if field.is_relation and not field.null]
    return {field.related_model.__name__ for field in fields}


def _build_values(model: Any, rows: dict[str, Any], number: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if field.is_relation:
            values[field.name] = rows.get(field.related_model.__name__)
        elif not isinstance(field, models.AutoField) and not getattr(field, "auto_now_add", False):
            values[field.name] = _build_value(field, number)
    checked = CHECKED.get(model.__name__, {})
    return {name: checked.get(name, value) for name, value in values.items()}


def _build_value(field: Any, number: int) -> Any:
    if isinstance(field, SearchVectorField):
        return Func(Value("simple"), Value(f"words {number}"), function="to_tsvector", output_field=field)
    if isinstance(field, models.BooleanField):
        return bool(field.get_default())
    if isinstance(field, models.JSONField):
        return field.get_default() if field.has_default() else {}
    if isinstance(field, ArrayField):
        return []
    by_type: list[tuple[Any, Any]] = [
        (models.UUIDField, uuid4()),
        (models.DateTimeField, datetime(2026, 1, number % 28 + 1, tzinfo=UTC)),
        (models.DateField, date(2026, 1, number % 28 + 1)),
        (models.BinaryField, b"bytes \x00"),
        (models.FloatField, 1.5),
        (models.DecimalField, number),
        (models.IntegerField, number),
        (models.CharField, f"{number} text"[: field.max_length or 10]),
        (models.TextField, f"{number} text"),
    ]
    return next(value for kind, value in by_type if isinstance(field, kind))


def check_rows(created: dict[str, int]) -> None:
    """Check that every created row still exists and that the current models read it."""
    for model in apps.get_app_config("lab").get_models():
        rows = list(model._default_manager.all())
        assert len(rows) >= created.get(model.__name__, 0), model.__name__
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
