"""Tests of the loader of SQL files."""

import ast
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from toolbench.lab import sql
from toolbench.lab.sql import has_any_id, load_statement

LAB = Path(sql.__file__).parent
STATEMENT = re.compile(r"\b(SELECT|INSERT INTO|DELETE FROM)\s|\bUPDATE \w+ .*\bSET\b", re.DOTALL)


@pytest.fixture
def sql_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    sql._read_file.cache_clear()
    monkeypatch.setattr(sql, "_LAB_FOLDER", tmp_path)
    (tmp_path / "worker/sql").mkdir(parents=True)
    file = tmp_path / "worker/sql/claim.sql"
    file.write_text(
        "-- Claim 5 % of the trials.\n-- Locks: trials.\n"
        "SELECT {columns}, '{}'::jsonb\n  -- why\nFROM lab_trial WHERE id = %s\n"
    )
    return file


def test_load_statement_fills_parts_and_removes_comments(sql_folder: Path) -> None:
    assert load_statement("worker/claim", columns="id, state") == (
        "SELECT id, state, '{}'::jsonb\nFROM lab_trial WHERE id = %s"
    )


def test_load_statement_without_part_raises_key_error(sql_folder: Path) -> None:
    with pytest.raises(KeyError, match="columns"):
        load_statement("worker/claim")


def test_sql_files_begin_with_comment() -> None:
    files = sorted(LAB.rglob("*.sql"))
    assert [file.name for file in files if not file.read_text("utf-8").startswith("-- ")] == []


def test_sql_files_are_each_read_by_a_module() -> None:
    code = "".join(path.read_text("utf-8") for path in LAB.rglob("*.py"))
    names = [f"{file.parent.parent.relative_to(LAB)}/{file.stem}" for file in LAB.rglob("*.sql")]
    assert [name for name in names if f'"{name}"' not in code] == []


def test_lab_modules_have_no_sql_in_f_strings_or_over_three_lines() -> None:
    for path in (path for path in LAB.rglob("*.py") if "migrations" not in path.parts):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
                assert not STATEMENT.search("".join(map(str, parts))), f"{path}:{node.lineno}"
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and STATEMENT.search(node.value):
                assert node.value.strip().count("\n") < 3, f"{path}:{node.lineno}"


@pytest.mark.django_db
def test_has_any_id_filters_by_ids_with_one_parameter() -> None:
    users = [User.objects.create(username=name) for name in ("ann", "bob", "eve")]
    found = User.objects.filter(has_any_id("pk", [users[0].pk, users[2].pk]))
    assert {user.username for user in found} == {"ann", "eve"}
    assert len(found.query.sql_with_params()[1]) == 1
    assert not User.objects.filter(has_any_id("pk", []))
