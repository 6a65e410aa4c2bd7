"""Restoration of a backup.

One transaction loads the dump and pauses what would send requests. Then the key files are written, and the database is
migrated to this version.
"""

import os
import tempfile
import threading
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from subprocess import Popen
from typing import IO

from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from toolbench.installation import build_command
from toolbench.lab.models import Process, Run
from toolbench.lab.operations.backup import (
    DUMP_NAME,
    BackupError,
    BackupManifest,
    check_dump,
    list_key_files,
    read_chunks,
    read_keys,
    read_manifest,
)
from toolbench.lab.operations.database_programs import (
    DatabaseProgramError,
    find_program,
    read_last_line,
    start_program,
)
from toolbench.lab.sql import load_statement
from toolbench.lab.worker.health import HEARTBEAT_TIMEOUT, get_heartbeat_ages
from toolbench.private_files import replace_file

RESTORED_REASON = "A backup was restored."
# psql runs these statements and the dump in one transaction, so that a failure leaves the old schema. The notice of the
# tables that are dropped is not printed, since it could be taken for the reason of a failure.
_EMPTY_SCHEMA = (
    "SET client_min_messages = error",
    "DROP SCHEMA IF EXISTS public CASCADE",
    "CREATE SCHEMA public AUTHORIZATION pg_database_owner",
)
_PAUSE = load_statement("operations/pause_restored")


class UnfinishedRestoreError(Exception):
    """The database was replaced by the backup, but a later step failed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Result of the restoration of a backup.

    Attributes:
        paused_runs: number of runs that were running; they are paused, so that a user decides when requests are sent.
        paused_schedules: number of schedules that were active, and are paused now.
        kept_keys: new paths of earlier key files that had another content.
    """

    manifest: BackupManifest
    paused_runs: int
    paused_schedules: int
    kept_keys: tuple[Path, ...]


def restore_backup(path: Path, *, replace: bool = False, programs: Path | None = None) -> RestoreResult:
    """Replace the database by a backup, migrate it to this version, and pause what would send requests.

    Args:
        path: the backup.
        replace: whether runs that are in the database now may be deleted.
        programs: folder of pg_restore and psql; None for those installed with Toolbench, else those on the PATH.

    Raises:
        BackupError: the file is no intact backup, a newer version of Toolbench wrote it, processes use the database, or
            the database has runs and `replace` is False. Nothing was changed.
        DatabaseProgramError: a program is missing or failed. Nothing was changed.
        UnfinishedRestoreError: the database was replaced, but a later step failed.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise BackupError(f"{path} cannot be read, or is no backup of Toolbench.") from error
    with archive:
        manifest = read_manifest(archive)
        _check_version(manifest)
        check_dump(archive, manifest)
        keys = read_keys(archive, manifest)
        _check_database(replace=replace)
        paused_runs, paused_schedules = _load_dump(archive, programs)
    kept_keys = _write_keys_and_migrate(keys)
    return RestoreResult(manifest, paused_runs, paused_schedules, kept_keys)


def _check_version(manifest: BackupManifest) -> None:
    migrations = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    if unknown := [name for name in manifest.migrations if name not in migrations]:
        raise BackupError(
            f"The backup is of a newer version of Toolbench ({unknown[-1]} is not known here). Install that version "
            "first."
        )


def _check_database(*, replace: bool) -> None:
    """Check that no process uses the database, and that no run would be deleted without `replace`.

    Raises:
        BackupError: processes are alive, or there are runs and `replace` is False.
    """
    tables = connection.introspection.table_names()
    if Run._meta.db_table not in tables or Process._meta.db_table not in tables:
        return
    limit = HEARTBEAT_TIMEOUT.total_seconds()
    ages = {**get_heartbeat_ages("worker"), **get_heartbeat_ages("scheduler")}
    if alive := [name for name, seconds in ages.items() if seconds < limit]:
        raise BackupError(
            f"Processes use the database ({', '.join(alive)}): stop Toolbench (Ctrl-C where "
            f"`{build_command('up')}` runs), wait a minute if it was killed, and try again."
        )
    runs = Run.objects.filter(deleted_at=None).count()
    if runs and not replace:
        raise BackupError(
            f"The database has {runs} run{'' if runs == 1 else 's'}, which the backup would replace: add --replace to "
            "delete them."
        )


def _load_dump(archive: zipfile.ZipFile, programs: Path | None) -> tuple[int, int]:
    """Send the dump through pg_restore to psql, which then pauses runs and schedules, all in one transaction.

    Returns:
        The numbers of paused runs and of paused schedules.

    Raises:
        DatabaseProgramError: a program is missing or failed; nothing was changed.
    """
    connection.close()
    restore_command: list[str | Path] = [
        find_program("pg_restore", programs),
        "--no-owner",
        "--no-privileges",
        "--file=-",
    ]
    psql = find_program("psql", programs)
    with tempfile.TemporaryDirectory() as folder, archive.open(DUMP_NAME) as dump:
        psql_errors = Path(folder) / "psql"
        try:
            with (
                start_program(_build_psql_command(psql, Path(folder)), psql_errors, has_input=True) as psql_process,
                start_program(restore_command, Path(folder) / "pg_restore", has_input=True) as restore,
            ):
                _pipe(dump, restore, psql_process)
        except DatabaseProgramError as error:
            # If psql fails first, pg_restore reports only that its output was closed.
            raise DatabaseProgramError(read_last_line(psql_errors) or str(error)) from error
        paused_runs, paused_schedules = read_last_line(Path(folder) / "results").split("|")
    return int(paused_runs), int(paused_schedules)


def _build_psql_command(psql: Path, folder: Path) -> list[str | Path]:
    """Return the command that replaces the schema by its input and runs the script that pauses runs and schedules.

    Args:
        psql: the program.
        folder: the script is written to it, and the command writes the result of the script there as `results`.
    """
    script = folder / "pause.sql"
    script.write_text(_PAUSE, "utf-8")
    command: list[str | Path] = [psql, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--single-transaction"]
    command += ["--set=ON_ERROR_STOP=1", f"--set=reason={RESTORED_REASON}", f"--output={folder / 'results'}"]
    return [*command, *(f"--command={statement}" for statement in _EMPTY_SCHEMA), "--file=-", f"--file={script}"]


def _pipe(dump: IO[bytes], restore: "Popen[bytes]", psql: "Popen[bytes]") -> None:
    """Feed pg_restore with the dump, and psql with the output of pg_restore."""
    feeder = threading.Thread(target=_feed, args=(dump, restore), daemon=True)
    feeder.start()
    assert restore.stdout is not None
    assert psql.stdin is not None
    with suppress(BrokenPipeError):  # psql has ended; its exit code and message say why
        for chunk in read_chunks(restore.stdout):
            psql.stdin.write(chunk)
    restore.stdout.close()
    feeder.join()


def _feed(dump: IO[bytes], restore: "Popen[bytes]") -> None:
    assert restore.stdin is not None
    with suppress(BrokenPipeError), restore.stdin as target:
        for chunk in read_chunks(dump):
            target.write(chunk)


def _write_keys_and_migrate(keys: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write the key files, migrate the database and refresh its statistics.

    Returns:
        The new paths of earlier key files, as from `_write_keys`.

    Raises:
        UnfinishedRestoreError: one of these steps failed.
    """
    try:
        kept_keys = tuple(_write_keys(keys))
        call_command("migrate", interactive=False, verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    except (OSError, CommandError, DatabaseError) as error:
        raise UnfinishedRestoreError(
            "The database was replaced by the backup, and its runs and schedules are paused. But the keys were not "
            f"written, or the database was not migrated to this version: {error}. Remove the cause and restore again "
            "with --replace."
        ) from error
    return kept_keys


def _write_keys(keys: Mapping[str, bytes]) -> list[Path]:
    """Write key files by name and return the new paths of earlier files that had another content."""
    kept: list[Path] = []
    files = list_key_files()
    for name, content in keys.items():
        file = files[name]
        if file.exists() and file.read_bytes() != content:
            kept_file = _find_free_path(file.with_name(f"{file.name}.before-restore"))
            os.replace(file, kept_file)
            kept.append(kept_file)
        replace_file(file, content)
    return kept


def _find_free_path(path: Path) -> Path:
    """Return the path or, if it exists, the first of `NAME-2`, `NAME-3` and so on that does not."""
    numbered_paths = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return next(candidate for candidate in chain((path,), numbered_paths) if not candidate.exists())
