"""Queue of imports that take longer than a page can wait.

Each import is a row of the replay queue. A worker imports the file and writes its progress to the row. The file stays
in a folder of the host that received it until the import has ended; workers of other hosts pass the import on to that
host.
"""

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO
from urllib.parse import parse_qs, urlencode
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from toolbench.lab.interchange.import_run import import_run
from toolbench.lab.interchange.safe_zip import RunImportError
from toolbench.lab.models import Replay
from toolbench.lab.replays.queue import LEASE_DURATION, ReplayKind
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS, is_unavailable
from toolbench.lab.worker.queue import notify_workers_of_replays

_IMPORT_FOLDER = "imports"
_PROGRESS_SECONDS = 1.0  # between two writes of the progress
_ORPHAN_AGE = timedelta(days=1)  # after which a file without an open import is deleted
_REFUSAL_RETENTION = timedelta(days=1)  # how long a refused import is listed
MAX_UPLOADED_MEMBER_BYTES = 32 << 20  # unpacked; parsed JSON can take 32 times as much memory


class _LeaseLostError(Exception):
    """Lease of an import that was lost: another worker has claimed the import, or its row was deleted."""


@dataclass(frozen=True, slots=True)
class ImportStatus:
    """State of a queued import.

    Attributes:
        row_id: primary key of the row in the replay queue.
        asked_at: when the import was requested.
        name: name of the file.
        done: number of trials stored at the last write of the progress.
        total: number of trials of the file; 0 until the progress is first written.
        refusal: why nothing was imported; empty while the import is open and after it has succeeded.
        run_id: the imported run; None until the import has succeeded.
    """

    row_id: int
    asked_at: datetime
    name: str
    done: int
    total: int
    refusal: str
    run_id: int | None

    @property
    def is_open(self) -> bool:
        """Whether the import has not ended."""
        return not self.refusal and self.run_id is None


def queue_import(file: IO[bytes], name: str, *, owner: User | None) -> Replay:
    """Store the file, create a row of the queue and notify the workers after the commit.

    The file is deleted again if the row cannot be created.

    Args:
        file: read from its current position to its end.
        name: name of the file; its last 200 characters are stored.
        owner: owner of the new run; None if there is no sign-in.
    """
    file_key = uuid4().hex
    path = _build_path(file_key)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with path.open("xb") as stored_file:
            path.chmod(0o600)
            shutil.copyfileobj(file, stored_file)
        with transaction.atomic():
            # The end of the name is kept, since its suffix selects the importer.
            query = urlencode({"file": file_key, "host": socket.gethostname(), "name": name[-200:]})
            row = Replay.objects.create(kind=Replay.IMPORT, scope_id=owner.pk if owner else 0, query=query)
            transaction.on_commit(lambda: notify_workers_of_replays([row.pk]))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return row


def get_import(row_id: int) -> ImportStatus:
    """Return the state of an import.

    Raises:
        Replay.DoesNotExist: there is no such import.
    """
    return _build_status(Replay.objects.get(pk=row_id, kind=Replay.IMPORT))


def get_listed_imports() -> tuple[ImportStatus, ...]:
    """Return the imports that are queued, running, or were refused in the last day, newest first, with one query."""
    refused = ~Q(refused="") & Q(finished_at__gt=Now() - _REFUSAL_RETENTION)
    rows = Replay.objects.filter(kind=Replay.IMPORT).filter(~Q(state=Replay.State.DONE) | refused)
    return tuple(map(_build_status, rows.order_by("-pk")))


def _build_status(row: Replay) -> ImportStatus:
    run_id = row.counts[0] if row.counts else None
    return ImportStatus(row.pk, row.asked_at, row.file_name, row.done, row.total, row.refused, run_id)


def process_import(row: Replay, leased_row: QuerySet[Replay]) -> None:
    """Import the file of a row and delete it afterwards. One transaction stores the run and ends the row.

    The reason of a refused import is stored in the row. If the lease was lost, nothing is stored and the file is kept
    for the worker that has the lease now. Other errors are raised again; the file is then kept only if the database was
    unavailable or the lease was lost.

    Args:
        row: the row of the queue.
        leased_row: query that returns this row while this worker has the row's lease, else nothing.
    """
    path = _get_row_path(row)
    refusal = ""
    try:
        with path.open("rb") as file, _report_progress(leased_row) as progress, transaction.atomic():
            owner = User.objects.filter(pk=row.scope_id).first()
            run = import_run(
                file, row.file_name, owner=owner, progress=progress.update, member_bytes=MAX_UPLOADED_MEMBER_BYTES
            )
            if not _end_row(leased_row, counts=[run.pk], done=run.trial_count, total=run.trial_count):
                raise _LeaseLostError
    except _LeaseLostError:
        return
    except FileNotFoundError:
        refusal = _describe_missing_file(row)
    except RunImportError as error:
        refusal = str(error)
    except Exception as error:
        if not is_unavailable(error) and leased_row.exists():  # otherwise another worker needs the file
            _remove_file(row)
        raise
    if not refusal or _end_row(leased_row, refused=refusal):
        _remove_file(row)


def _describe_missing_file(row: Replay) -> str:
    if row.file_host in ("", socket.gethostname()):
        return "The file no longer exists. Nothing was imported. Upload it again."
    return (
        f"The file is on {row.file_host}, where no worker was running. Nothing was imported. "
        "Start a worker there and upload the file again."
    )


def remove_orphaned_files() -> None:
    """Delete files that are older than a day and belong to no open import.

    Processes that died leave such files.
    """
    files = _list_files_before(timezone.now() - _ORPHAN_AGE)
    if files:  # listed before the rows, so that the row of each of these files already exists
        open_imports = Replay.objects.filter(kind=Replay.IMPORT).exclude(state=Replay.State.DONE)
        for name in files.keys() - {_get_row_path(row).name for row in open_imports}:
            files[name].unlink(missing_ok=True)


def _list_files_before(moment: datetime) -> dict[str, Path]:
    path_by_name = {}
    for path in _build_path("").glob("*"):
        with suppress(FileNotFoundError):  # the import ended after the file was listed
            if path.stat().st_mtime < moment.timestamp():
                path_by_name[path.name] = path
    return path_by_name


def _end_row(leased_row: QuerySet[Replay], **columns: object) -> int:
    """Mark the row as done, and return 1; return 0 if the lease was lost."""
    return leased_row.update(state=Replay.State.DONE, finished_at=Now(), lease=None, **columns)


def _get_row_path(row: Replay) -> Path:
    return _build_path(parse_qs(row.query)["file"][0])


def _remove_file(row: Replay) -> None:
    _get_row_path(row).unlink(missing_ok=True)


def _build_path(file_key: str) -> Path:
    return Path(settings.VAR_DIR) / _IMPORT_FOLDER / file_key


class _ProgressWriter:
    """Writer of an import's progress. Once a second, a thread writes the progress and renews the import's lease.

    The thread has its own database connection, since updates in the import's transaction are visible only after it.
    """

    def __init__(self, leased_row: QuerySet[Replay]) -> None:
        self._leased_row = leased_row
        self._figures: dict[str, int] = {}
        self._has_lost_lease = False
        self.stopped = threading.Event()

    def update(self, done: int, total: int) -> None:
        """Set the figures of the next write.

        Raises:
            _LeaseLostError: the last write found that the lease was lost.
        """
        self._figures = {"done": done, "total": total}
        if self._has_lost_lease:
            raise _LeaseLostError

    def write_until_stopped(self) -> None:
        try:
            while not self.stopped.wait(_PROGRESS_SECONDS):
                self._write()
        finally:
            connections.close_all()

    def _write(self) -> None:
        try:
            self._has_lost_lease = not self._leased_row.all().update(
                lease_until=Now() + LEASE_DURATION, **self._figures
            )
        except UNAVAILABLE_ERRORS:
            connections.close_all()  # the import fails too; the next write tries a new connection


@contextmanager
def _report_progress(leased_row: QuerySet[Replay]) -> Iterator[_ProgressWriter]:
    writer = _ProgressWriter(leased_row)
    thread = threading.Thread(target=writer.write_until_stopped, name="import progress", daemon=True)
    thread.start()
    try:
        yield writer
    finally:
        writer.stopped.set()
        thread.join()


REPLAY_KINDS = {
    Replay.IMPORT: ReplayKind(
        "an import",
        "The worker stopped four times while it imported this file. Nothing was imported. Look for a crash or a lack "
        "of memory in the log of the worker, then upload the file again.",
        process_import,
        _remove_file,
    )
}
