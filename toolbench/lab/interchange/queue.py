"""Queue of imports that take longer than a page can wait.

Each import is a row of the replay queue. A worker imports the file and writes its progress to the row. The file lies in
a folder shared by all processes until the import has ended.
"""

import shutil
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
_PROGRESS_SECONDS = 1.0
_ORPHAN_AGE = timedelta(days=1)  # since it was written, of a file without a row
_REFUSAL_SHOWN_FOR = timedelta(days=1)  # after the import was refused
MAX_UPLOADED_MEMBER_BYTES = 32 << 20  # of an archive; nested JSON takes up to 32 times as much memory once it is parsed


class _LeaseLostError(Exception):
    """Another worker has claimed the import."""


@dataclass(frozen=True, slots=True)
class ImportStatus:
    """State of a queued import.

    Attributes:
        row_id: the row of the replay queue.
        asked_at: when the import was requested.
        name: name of the file.
        done: trials stored so far.
        total: trials of the file; 0 until it has been read once.
        refused: why nothing was imported; "" otherwise.
        run_id: the imported run; None until it exists.
    """

    row_id: int
    asked_at: datetime
    name: str
    done: int
    total: int
    refused: str
    run_id: int | None

    @property
    def waiting(self) -> bool:
        """Whether the import has not ended."""
        return not self.refused and self.run_id is None


def queue_import(file: IO[bytes], name: str, *, owner: User | None) -> Replay:
    """Store the file, create a row of the queue and notify a worker when the transaction is committed."""
    key = uuid4().hex
    path = _build_path(key)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with path.open("xb") as kept:
            path.chmod(0o600)
            shutil.copyfileobj(file, kept)
        with transaction.atomic():
            query = urlencode({"file": key, "name": name[-200:]})  # its suffix says which kind of file it is
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


def get_open_imports() -> tuple[ImportStatus, ...]:
    """Return the imports that wait, run, or were refused in the last day, the newest first. One query."""
    refused = ~Q(refused="") & Q(finished_at__gt=Now() - _REFUSAL_SHOWN_FOR)
    rows = Replay.objects.filter(kind=Replay.IMPORT).filter(~Q(state=Replay.State.DONE) | refused)
    return tuple(map(_build_status, rows.order_by("-pk")))


def _build_status(row: Replay) -> ImportStatus:
    run_id = row.counts[0] if row.counts else None
    return ImportStatus(row.pk, row.asked_at, row.file_name, row.done, row.total, row.refused, run_id)


def process_import(row: Replay, held: QuerySet[Replay]) -> None:
    """Import the file of a row. The row ends in the same transaction, and the file is deleted.

    An import that is refused is noted in the row. If the lease was lost, nothing is stored and the file is kept. Other
    errors are raised; the file is then kept only if the database was unavailable.

    Args:
        row: the row of the queue.
        held: a query for this row that finds it as long as this worker has its lease.
    """
    path = _get_row_path(row)
    try:
        with path.open("rb") as file, _report_progress(held) as progress, transaction.atomic():
            owner = User.objects.filter(pk=row.scope_id).first()
            run = import_run(
                file, row.file_name, owner=owner, progress=progress.update, member_bytes=MAX_UPLOADED_MEMBER_BYTES
            )
            if not _end_row(held, counts=[run.pk], done=run.trial_count, total=run.trial_count):
                raise _LeaseLostError
    except _LeaseLostError:
        return
    except FileNotFoundError:
        _end_row(held, refused="The file is gone: send it again. Nothing was imported.")
    except RunImportError as refused:
        _end_row(held, refused=str(refused))
    except Exception as error:
        if not is_unavailable(error):  # else the worker that claims the row next needs the file
            _remove_file(row)
        raise
    _remove_file(row)


def remove_orphaned_files() -> None:
    """Delete files that are older than a day and belong to no open import.

    They are left behind by processes that died.
    """
    files = _list_files_before(timezone.now() - _ORPHAN_AGE)
    if files:  # listed before the rows are read: a row is created within a day of its file
        needed = Replay.objects.filter(kind=Replay.IMPORT).exclude(state=Replay.State.DONE)
        for name in files.keys() - {_get_row_path(row).name for row in needed}:
            files[name].unlink(missing_ok=True)


def _list_files_before(moment: datetime) -> dict[str, Path]:
    found = {}
    for path in _build_path("").glob("*"):
        with suppress(FileNotFoundError):  # its import has ended since it was listed
            if path.stat().st_mtime < moment.timestamp():
                found[path.name] = path
    return found


def _end_row(held: QuerySet[Replay], **columns: object) -> int:
    return held.update(state=Replay.State.DONE, finished_at=Now(), lease=None, **columns)


def _get_row_path(row: Replay) -> Path:
    return _build_path(parse_qs(row.query)["file"][0])


def _remove_file(row: Replay) -> None:
    _get_row_path(row).unlink(missing_ok=True)


def _build_path(key: str) -> Path:
    return Path(settings.VAR_DIR) / _IMPORT_FOLDER / key


class _ProgressWriter:
    """Writer of an import's progress, which also renews its lease once a second.

    It uses another database connection: the import is one transaction, in which progress would not be visible.
    """

    def __init__(self, held: QuerySet[Replay]) -> None:
        self._held = held
        self._figures: dict[str, int] = {}
        self._lost = False
        self.stopped = threading.Event()

    def update(self, done: int, total: int) -> None:
        """Set the figures that are written next.

        Raises:
            _LeaseLostError: another worker has claimed the import.
        """
        self._figures = {"done": done, "total": total}
        if self._lost:
            raise _LeaseLostError

    def write_until_stopped(self) -> None:
        try:
            while not self.stopped.wait(_PROGRESS_SECONDS):
                self._write()
        finally:
            connections.close_all()

    def _write(self) -> None:
        try:
            self._lost = not self._held.all().update(lease_until=Now() + LEASE_DURATION, **self._figures)
        except UNAVAILABLE_ERRORS:
            connections.close_all()  # the import fails too; the next write tries a new connection


@contextmanager
def _report_progress(held: QuerySet[Replay]) -> Iterator[_ProgressWriter]:
    progress = _ProgressWriter(held)
    thread = threading.Thread(target=progress.write_until_stopped, name="import progress", daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        progress.stopped.set()
        thread.join()


REPLAY_KINDS = {
    Replay.IMPORT: ReplayKind(
        "an import",
        "The worker stopped four times at this file. Nothing was imported.",
        process_import,
        _remove_file,
    )
}
