"""Statements that lie in files."""

from pathlib import Path

import pytest

from toolbench.lab import sql
from toolbench.lab.sql import statement


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    statement.cache_clear()
    monkeypatch.setattr(sql, "_ROOMS", tmp_path)
    (tmp_path / "worker/sql").mkdir(parents=True)
    file = tmp_path / "worker/sql/claim.sql"
    file.write_text(
        "-- Claim 5 % of the trials.\n-- Locks: trials.\n"
        "SELECT {columns}, '{}'::jsonb\n  -- why\nFROM lab_trial WHERE id = %s\n"
    )
    return file


def test_statement_fills_parts_and_drops_comments(written: Path) -> None:
    assert statement("worker/claim", columns="id, state") == (
        "SELECT id, state, '{}'::jsonb\nFROM lab_trial WHERE id = %s"
    )


def test_statement_without_a_part_raises_key_error(written: Path) -> None:
    with pytest.raises(KeyError, match="columns"):
        statement("worker/claim")


def test_every_sql_file_begins_with_a_comment() -> None:
    files = sorted(Path(sql.__file__).parent.rglob("*.sql"))
    assert [file.name for file in files if not file.read_text("utf-8").startswith("-- ")] == []
