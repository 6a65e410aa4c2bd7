"""Backups: the whole database in one file, with a manifest and, on request, the key files of the installation.

The file is a ZIP: `database.dump` (custom format of pg_dump, compressed), `keys/…`, and `manifest.json` at the end.
"""

import hashlib
import json
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from toolbench.lab.models import Run, Trial
from toolbench.lab.operations.database_programs import find_program, start_program

FORMAT = 1
DUMP_NAME = "database.dump"
MANIFEST_NAME = "manifest.json"
KEY_FOLDER = "keys"
CHUNK_BYTES = 1 << 20
# Errors that `zipfile` raises for a member that is missing, damaged, encrypted or compressed in an unknown way.
_MEMBER_ERRORS = (KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


class BackupError(Exception):
    """A backup cannot be written, read or restored; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """Description of a backup, stored in it.

    Attributes:
        created_at: time at which the backup began, as ISO 8601.
        toolbench: version of Toolbench that wrote it; "" for a checkout.
        migrations: applied migrations, as app and name joined by a dot.
        runs: number of runs, deleted ones included.
        trials: number of trials, those of deleted runs included.
        dump_sha256: digest of the dump.
        keys: names of the key files in the backup.
    """

    format: int
    created_at: str
    toolbench: str
    migrations: tuple[str, ...]
    runs: int
    trials: int
    dump_bytes: int
    dump_sha256: str
    keys: tuple[str, ...]


def list_key_files() -> dict[str, Path]:
    """Return the paths of the key files by their names in a backup.

    The files decrypt stored API keys and verify sessions and share links.
    """
    return {"provider_keys.key": Path(settings.KEY_FILE), "secret_key": Path(settings.VAR_DIR) / "secret_key"}


def write_backup(path: Path, *, with_keys: bool = False, programs: Path | None = None) -> BackupManifest:
    """Write a backup of the database as it is now.

    Workers may continue; what they write after the start of the backup is not in it.

    Args:
        path: the new file, readable only by its owner. It is first written as `NAME.partial`.
        with_keys: whether the backup contains the files of `list_key_files`, unencrypted.
        programs: folder of pg_dump; None for the one that is installed with Toolbench, else the one on the PATH.

    Raises:
        BackupError: the file exists or cannot be written, or the database has no tables of Toolbench.
        DatabaseProgramError: pg_dump is missing or failed.
    """
    if path.exists():
        raise BackupError(f"{path} exists already: name a new file.")
    if Run._meta.db_table not in connection.introspection.table_names():
        raise BackupError("The database has no tables of Toolbench, so there is nothing to back up.")
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.touch(mode=0o600)
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
            manifest = _write_parts(archive, with_keys=with_keys, programs=programs)
        partial.rename(path)
    except OSError as error:
        raise BackupError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return manifest


def _write_parts(archive: zipfile.ZipFile, *, with_keys: bool, programs: Path | None) -> BackupManifest:
    """Write the dump, the key files if `with_keys`, and the manifest; return the manifest."""
    created_at = timezone.now().isoformat(timespec="seconds")
    migrations = tuple(sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations()))
    runs, trials = Run.objects.count(), Trial.objects.count()
    digest, dump_bytes = hashlib.sha256(), 0
    command: list[str | Path] = [find_program("pg_dump", programs), "--format=custom", "--no-owner", "--no-privileges"]
    with (
        tempfile.TemporaryDirectory() as folder,
        start_program(command, Path(folder) / "errors", has_input=False) as dump,
        archive.open(DUMP_NAME, "w", force_zip64=True) as entry,
    ):
        assert dump.stdout is not None
        for chunk in read_chunks(dump.stdout):
            digest.update(chunk)
            dump_bytes += len(chunk)
            entry.write(chunk)
    keys = {name: file for name, file in list_key_files().items() if with_keys and file.exists()}
    for name, file in keys.items():
        archive.writestr(f"{KEY_FOLDER}/{name}", file.read_bytes())
    manifest = BackupManifest(
        format=FORMAT,
        created_at=created_at,
        toolbench=get_toolbench_version(),
        migrations=migrations,
        runs=runs,
        trials=trials,
        dump_bytes=dump_bytes,
        dump_sha256=digest.hexdigest(),
        keys=tuple(keys),
    )
    archive.writestr(MANIFEST_NAME, json.dumps(asdict(manifest), indent=1))
    return manifest


def read_manifest(archive: zipfile.ZipFile) -> BackupManifest:
    """Return the manifest of a backup.

    Raises:
        BackupError: the file is not a backup, is damaged, or has another format.
    """
    try:
        document = json.loads(archive.read(MANIFEST_NAME))
        if document["format"] != FORMAT:
            raise BackupError(
                f"The backup has format {document['format']}, and this version of Toolbench reads format {FORMAT}. "
                "Restore it with the version that wrote it."
            )
        lists = {name: tuple(document[name]) for name in ("migrations", "keys")}
        return BackupManifest(**{**document, **lists})
    except (*_MEMBER_ERRORS, ValueError, TypeError) as error:
        raise BackupError("The file is no backup of Toolbench, or it is damaged.") from error


def check_dump(archive: zipfile.ZipFile, manifest: BackupManifest) -> None:
    """Check that the dump is complete and unchanged.

    Raises:
        BackupError: the dump is incomplete or was changed.
    """
    digest = hashlib.sha256()
    try:
        with archive.open(DUMP_NAME) as entry:
            for chunk in read_chunks(entry):
                digest.update(chunk)
    except _MEMBER_ERRORS as error:
        raise BackupError("The backup is damaged: its dump cannot be read to the end.") from error
    if digest.hexdigest() != manifest.dump_sha256:
        raise BackupError("The backup is damaged: its dump does not match the digest in its manifest.")


def read_keys(archive: zipfile.ZipFile, manifest: BackupManifest) -> dict[str, bytes]:
    """Return the contents of the key files in a backup by name; names that `list_key_files` lacks are left out.

    Raises:
        BackupError: a key file cannot be read.
    """
    try:
        return {name: archive.read(f"{KEY_FOLDER}/{name}") for name in manifest.keys if name in list_key_files()}
    except _MEMBER_ERRORS as error:
        raise BackupError("The backup is damaged: one of its key files cannot be read.") from error


def read_chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a file in parts of at most CHUNK_BYTES."""
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def get_toolbench_version() -> str:
    """Return the version of the installed package; "" in a checkout."""
    try:
        return version("toolbench")
    except PackageNotFoundError:
        return ""
