"""Backups and their restoration: a round trip over every table, and backups that are refused."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from psycopg import sql

from tests.environment import SOCKET_FOLDER
from tests.factories import make_gateway_trace, make_run
from tests.lab.schedules.scheduled import make_alert_delivery, make_rule
from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from toolbench.installation import ROOT
from toolbench.lab.models import Probe, Process, Run, Schedule
from toolbench.lab.operations import restore
from toolbench.lab.operations.backup import BackupError, read_keys, read_manifest, write_backup
from toolbench.lab.operations.database_programs import (
    DatabaseProgramError,
    build_program_environment,
    find_program,
    start_program,
)
from toolbench.lab.operations.restore import RESTORED_REASON, restore_backup
from toolbench.lab.worker.health import record_heartbeat
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)
CHANGED_BY_RESTORE = {"lab_run", "lab_schedule", "lab_process", "lab_probe", "lab_alertdelivery"}
STATES_AFTER_RESTORE = [
    ("finished", ""),
    ("paused", RESTORED_REASON),
    ("false", ""),
    ("done", RESTORED_REASON),
    ("unclear", RESTORED_REASON),
]


@pytest.fixture
def other_database() -> Iterator[str]:
    """Yield the name of an empty database on the same server."""
    name = f"{connection.settings_dict['NAME']}_restored"
    with psycopg.connect(host=str(SOCKET_FOLDER), user="postgres", dbname="postgres", autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield name
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def backup(scripted: ScriptedServer, tmp_path: Path) -> Path:
    """Return a backup of a finished run, a running one with unusual bytes, a schedule, a queued probe and an alert."""
    model = make_scripted_model(scripted)
    launch_run(model, trials=2)
    run_worker_session(model)
    run = make_run(state=Run.State.RUNNING, title="Goes on: \\x00 “quoted” 'single' \t tab")
    schedule = Schedule.objects.create(requests_per_run=1, requests_per_month=1, next_due_at=timezone.now())
    Probe.objects.create(model=model, provider=model.provider)
    make_alert_delivery(run, make_rule("drift", schedule, email="a@example.test"))
    make_gateway_trace(client_request=bytes(range(256)))
    write_backup(tmp_path / "all.zip")
    return tmp_path / "all.zip"


def run_manage(database: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    url = str(os.environ["DATABASE_URL"]).replace("/toolbench", f"/{database}")
    environment = {**os.environ, "DATABASE_URL": url, **variables}
    command = [sys.executable, "-m", "toolbench.manage", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


def read_states(database: str) -> list[tuple[str, str]]:
    """Return the states of all runs, schedules, probes and alert messages, in this order, with their reasons."""
    statement = """
        SELECT state, stopped_reason FROM (SELECT * FROM lab_run ORDER BY id) AS run
        UNION ALL SELECT active::text, '' FROM lab_schedule
        UNION ALL SELECT state, sentence FROM lab_probe
        UNION ALL SELECT state, last_error FROM lab_alertdelivery
    """
    with psycopg.connect(host=str(SOCKET_FOLDER), user="postgres", dbname=database) as restored:
        return restored.execute(statement).fetchall()


def read_tables(database: str) -> dict[str, tuple[Any, ...]]:
    """Return the number of rows and their digest by table, and the last value of each sequence."""
    with psycopg.connect(host=str(SOCKET_FOLDER), user="postgres", dbname=database) as open_connection:
        names = open_connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        digest = "SELECT count(*), md5(string_agg(md5(row::text), '' ORDER BY md5(row::text))) FROM {} AS row"
        tables = {
            name: open_connection.execute(sql.SQL(digest).format(sql.Identifier(name))).fetchone() or ()
            for (name,) in names
        }
        sequences = open_connection.execute("SELECT sequencename, last_value FROM pg_sequences").fetchall()
        return {**tables, **{name: (value,) for name, value in sequences}}


def test_restore_keeps_every_row_of_every_table(backup: Path, other_database: str) -> None:
    process = run_manage(other_database, "restore", str(backup))

    assert process.returncode == 0, process.stderr
    assert "Paused 1 run and 1 schedule. Resume them" in process.stdout
    before, after = read_tables(str(connection.settings_dict["NAME"])), read_tables(other_database)
    assert before.keys() == after.keys()
    assert len(before) > 60
    assert {name for name in before if before[name] != after[name]} <= CHANGED_BY_RESTORE
    assert before["lab_stepbody"][0] > 0
    assert read_states(other_database) == STATES_AFTER_RESTORE

    refused = run_manage(other_database, "restore", str(backup))
    assert refused.returncode == 1
    assert "The database has 2 runs, which the backup would replace: add --replace" in refused.stderr
    replacing = run_manage(other_database, "restore", str(backup), "--replace")
    assert replacing.returncode == 0, replacing.stderr
    twice = read_tables(other_database)
    assert {name for name in before if before[name] != twice[name]} <= CHANGED_BY_RESTORE


def test_restore_failing_midway_changes_nothing(backup: Path, other_database: str) -> None:
    """The dump is truncated and its manifest agrees, so pg_restore fails after most of the script was sent."""
    assert run_manage(other_database, "restore", str(backup)).returncode == 0
    before = read_tables(other_database)
    broken = backup.with_name("broken.zip")
    with zipfile.ZipFile(backup) as source, zipfile.ZipFile(broken, "w") as target:
        dump = source.read("database.dump")[:-2_000]
        manifest = json.loads(source.read("manifest.json"))
        manifest["dump_sha256"] = hashlib.sha256(dump).hexdigest()
        target.writestr("database.dump", dump)
        target.writestr("manifest.json", json.dumps(manifest))

    process = run_manage(other_database, "restore", str(broken), "--replace")

    assert process.returncode == 1
    assert "pg_restore: error" in process.stderr
    assert "Nothing was changed." in process.stderr
    assert read_tables(other_database) == before


def test_restore_failing_after_load_leaves_runs_paused(
    backup: Path, other_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key file of the backup cannot be written, since a file has the name of its folder."""
    key, with_keys = tmp_path / "provider_keys.key", tmp_path / "keys.zip"
    key.write_bytes(b"a key")
    with monkeypatch.context() as patch:
        patch.setattr(settings, "KEY_FILE", key)
        patch.setattr(settings, "VAR_DIR", tmp_path)
        write_backup(with_keys, with_keys=True)

    process = run_manage(other_database, "restore", str(with_keys), TOOLBENCH_KEY_FILE=str(key / "file"))

    assert process.returncode == 1
    assert "Nothing was changed" not in process.stderr
    assert "The database was replaced by the backup, and its runs and schedules are paused." in process.stderr
    assert read_states(other_database) == STATES_AFTER_RESTORE


def test_restore_backup_with_live_processes_is_refused(backup: Path) -> None:
    record_heartbeat("worker")
    with pytest.raises(BackupError, match="Processes use the database"):
        restore_backup(backup, replace=True)
    assert Process.objects.count() == 1


def test_restore_backup_of_newer_version_is_refused(backup: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def add_migration(archive: zipfile.ZipFile) -> Any:
        manifest = read_manifest(archive)
        return replace(manifest, migrations=(*manifest.migrations, "lab.9999_later"))

    monkeypatch.setattr(restore, "read_manifest", add_migration)
    with pytest.raises(BackupError, match=r"newer version of Toolbench \(lab.9999_later"):
        restore_backup(backup, replace=True)


@pytest.mark.parametrize("damage", ["flipped", "short", "other", "missing"])
def test_restore_command_refuses_damaged_file(backup: Path, damage: str) -> None:
    content = bytearray(backup.read_bytes())
    content[len(content) // 3] ^= 1
    damaged = {"flipped": bytes(content), "short": content[: len(content) // 2], "other": b"PK", "missing": None}[
        damage
    ]
    path = backup.with_name("damaged.zip")
    if damaged is not None:
        path.write_bytes(damaged)
    with pytest.raises(CommandError, match=r"Nothing was changed\. .*(damaged|no backup|cannot be read)"):
        call_command("restore", path, replace=True)
    assert Run.objects.count() == 2


def test_restore_command_refuses_backup_without_listed_key(backup: Path) -> None:
    broken = backup.with_name("broken.zip")
    with zipfile.ZipFile(backup) as source, zipfile.ZipFile(broken, "w") as target:
        target.writestr("database.dump", source.read("database.dump"))
        target.writestr(
            "manifest.json", json.dumps(json.loads(source.read("manifest.json")) | {"keys": ["secret_key"]})
        )
    with pytest.raises(CommandError, match=r"Nothing was changed\. .*key files cannot be read"):
        call_command("restore", broken, replace=True)
    assert Run.objects.count() == 2


def test_write_backup_contains_keys_only_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "provider_keys.key"
    key.write_bytes(b"first key")
    monkeypatch.setattr(settings, "KEY_FILE", key)
    monkeypatch.setattr(settings, "VAR_DIR", tmp_path)
    assert write_backup(tmp_path / "without.zip").keys == ()
    manifest = write_backup(tmp_path / "with.zip", with_keys=True)
    assert manifest.keys == ("provider_keys.key",)
    assert (tmp_path / "with.zip").stat().st_mode & 0o777 == 0o600
    key.write_bytes(b"second key")
    with zipfile.ZipFile(tmp_path / "with.zip") as archive:
        keys = read_keys(archive, manifest)
    kept = restore._write_keys(keys)
    assert (key.read_bytes(), [file.read_bytes() for file in kept]) == (b"first key", [b"second key"])
    key.write_bytes(b"third key")
    assert [file.read_bytes() for file in kept + restore._write_keys(keys)] == [b"second key", b"third key"]
    assert key.stat().st_mode & 0o777 == 0o600


def test_backup_command_does_not_overwrite_file(tmp_path: Path) -> None:
    file = tmp_path / "all.zip"
    file.write_bytes(b"mine")
    with pytest.raises(CommandError, match="exists already"):
        call_command("backup", file)
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("backup", tmp_path / "no folder" / "all.zip")
    assert file.read_bytes() == b"mine"
    assert [path.name for path in tmp_path.iterdir()] == ["all.zip"]


def test_start_program_that_ends_before_its_input_raises_its_message(tmp_path: Path) -> None:
    def write_too_late() -> None:
        command = ["/bin/sh", "-c", "echo 'out of memory' >&2; exit 3"]
        with start_program(command, tmp_path / "errors", has_input=True) as process:
            process.wait()
            assert process.stdin is not None
            process.stdin.write(b"stays in the buffer until it is closed")

    with pytest.raises(DatabaseProgramError, match="out of memory"):
        write_too_late()


def test_build_program_environment_has_password(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"HOST": "db", "PORT": 5433, "USER": "ana", "PASSWORD": "s3cret", "OPTIONS": {"sslmode": "require"}}
    with monkeypatch.context() as patch:
        for name, value in values.items():
            patch.setitem(connection.settings_dict, name, value)
        environment = build_program_environment()
    assert (environment["PGPASSWORD"], environment["PGPORT"], environment["PGSSLMODE"]) == ("s3cret", "5433", "require")
    with pytest.raises(DatabaseProgramError, match="no program pg_dump in /no/folder"):
        find_program("pg_dump", Path("/no/folder"))
