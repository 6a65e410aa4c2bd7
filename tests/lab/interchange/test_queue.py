"""Queued imports: complete or refused, done once, with progress, and without orphaned files."""

import io
import json
import os
import socket
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from tests.lab.conftest import RunInThread, wait_for_blocked_sessions
from tests.lab.interchange.bundle.test_read import write_bundle_with_bad_case
from tests.lab.interchange.bundle_bytes import zip_members
from tests.lab.interchange.inspect_ai.test_log import HEADER, make_sample
from toolbench.lab.interchange import queue
from toolbench.lab.interchange.queue import (
    REPLAY_KINDS,
    get_import,
    get_listed_imports,
    process_import,
    queue_import,
    remove_orphaned_files,
)
from toolbench.lab.models import Replay, Run, Trial
from toolbench.lab.replays.queue import list_waiting_replays, run_replay
from toolbench.lab.schedule import build_schedule
from toolbench.lab.worker.job_failures import list_recent_failures

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "VAR_DIR", tmp_path)


def make_log(samples: int = 3, **fields: Any) -> io.BytesIO:
    return io.BytesIO(json.dumps(HEADER | {"samples": [make_sample(n) for n in range(samples)]} | fields).encode())


def list_files() -> list[Path]:
    return list((Path(settings.VAR_DIR) / "imports").iterdir())


def test_queue_import_makes_a_run_and_removes_the_file() -> None:
    row = queue_import(make_log(), "log.json", owner=None)
    assert get_import(row.pk).is_open
    assert [path.stat().st_mode & 0o777 for path in list_files()] == [0o600]

    run_replay(row.pk, REPLAY_KINDS)

    run = Run.objects.get(imported=True)
    found = get_import(row.pk)
    assert (found.name, found.done, found.total, found.run_id, found.refusal) == ("log.json", 3, 3, run.pk, "")
    assert run.origin["file"] == "log.json"
    assert list_files() == []
    run_replay(row.pk, REPLAY_KINDS)
    assert Run.objects.count() == 1


def test_queue_import_refused_file_has_a_refusal() -> None:
    row = queue_import(io.BytesIO(b"no log"), "log.json", owner=None)
    run_replay(row.pk, REPLAY_KINDS)
    found = get_import(row.pk)
    assert "Nothing was imported" in found.refusal
    assert not found.is_open
    assert list_files() == []


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_queue_import_refusal_with_unstorable_text_is_stored(name: str) -> None:
    row = queue_import(io.BytesIO(write_bundle_with_bad_case(name)), "bundle.zip", owner=None)
    run_replay(row.pk, REPLAY_KINDS)
    assert "There is no tool a" in get_import(row.pk).refusal
    assert list_files() == []


def test_queue_import_reads_a_file_with_a_long_name_by_its_ending() -> None:
    row = queue_import(make_log(), f"{'x' * 240}.json", owner=None)
    run_replay(row.pk, REPLAY_KINDS)
    assert get_import(row.pk).run_id == Run.objects.get().pk


def test_queue_import_of_the_same_file_twice_imports_once(elsewhere: RunInThread) -> None:
    """Both imports run at the same time: the second waits for the first."""
    rows = [queue_import(make_log(), "log.json", owner=None) for _ in range(2)]
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE lab_step IN SHARE MODE")
        ends = [elsewhere(run_replay, row.pk, REPLAY_KINDS) for row in rows]
        wait_for_blocked_sessions(2)
    for end in ends:
        end.result()
    assert Run.objects.count() == 1
    refusals = [get_import(row.pk).refusal for row in rows]
    assert sorted(map(bool, refusals)) == [False, True]
    assert "imported already" in "".join(refusals)


def test_queue_import_of_a_stopped_worker_keeps_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop_worker(*args: object, **options: object) -> Run:
        raise SystemExit

    row = queue_import(make_log(), "log.json", owner=None)
    with monkeypatch.context() as patched:
        patched.setattr(queue, "import_run", stop_worker)
        with pytest.raises(SystemExit):
            run_replay(row.pk, REPLAY_KINDS)
    Replay.objects.filter(pk=row.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    run_replay(row.pk, REPLAY_KINDS)
    assert get_import(row.pk).run_id == Run.objects.get().pk


def test_queue_import_without_its_file_is_refused() -> None:
    row = queue_import(make_log(), "log.json", owner=None)
    list_files()[0].unlink()
    run_replay(row.pk, REPLAY_KINDS)
    assert "The file no longer exists" in get_import(row.pk).refusal


def test_queue_import_with_its_file_on_another_host_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    row = queue_import(make_log(), "log.json", owner=None)
    list_files()[0].unlink()
    monkeypatch.setattr(socket, "gethostname", lambda: "host-2")
    run_replay(row.pk, REPLAY_KINDS)
    assert get_import(row.pk).refusal.startswith(f"The file is on {row.file_host}, where no worker was running.")


def test_queue_import_of_a_lost_worker_is_repeated() -> None:
    row = queue_import(make_log(), "log.json", owner=None)
    past = timezone.now() - timedelta(seconds=1)
    Replay.objects.filter(pk=row.pk).update(state=Replay.State.RUNNING, lease=uuid4(), lease_until=past)
    assert list_waiting_replays() == (row.pk,)
    run_replay(row.pk, REPLAY_KINDS)
    assert get_import(row.pk).run_id == Run.objects.get().pk


@pytest.mark.parametrize("is_valid", [True, False])
def test_process_import_with_a_lost_lease_stores_nothing(is_valid: bool) -> None:
    row = queue_import(make_log() if is_valid else io.BytesIO(b"no log"), "log.json", owner=None)
    process_import(row, Replay.objects.filter(pk=row.pk, lease=uuid4()))
    assert not Run.objects.exists()
    assert not Trial.objects.exists()
    assert len(list_files()) == 1
    run_replay(row.pk, REPLAY_KINDS)
    assert list_files() == []


def test_import_progress_is_visible_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_PROGRESS_SECONDS", 0.01)
    row = queue_import(make_log(), "log.json", owner=None)
    Replay.objects.filter(pk=row.pk).update(state=Replay.State.RUNNING, lease=uuid4())
    claimed_rows = Replay.objects.filter(pk=row.pk)
    with queue._report_progress(claimed_rows) as progress:
        progress.update(2, 3)
        while get_import(row.pk).done != 2:
            connection.close()  # each read uses a new connection
        assert get_import(row.pk).is_open
    assert get_import(row.pk).total == 3


def test_queue_import_internal_error_is_refused_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_internal_error(*args: object, **options: object) -> Run:
        raise RuntimeError

    monkeypatch.setattr(queue, "import_run", raise_internal_error)
    row = queue_import(make_log(), "log.json", owner=None)
    run_replay(row.pk, REPLAY_KINDS)
    assert "Toolbench itself failed" in get_import(row.pk).refusal
    assert list_files() == []
    assert [(failure.job, failure.error) for failure in list_recent_failures()] == [("an import", "RuntimeError")]


def test_process_import_internal_error_after_a_lost_lease_keeps_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_internal_error(*args: object, **options: object) -> Run:
        raise RuntimeError

    monkeypatch.setattr(queue, "import_run", raise_internal_error)
    row = queue_import(make_log(), "log.json", owner=None)
    with pytest.raises(RuntimeError):
        process_import(row, Replay.objects.filter(pk=row.pk, lease=uuid4()))
    assert len(list_files()) == 1


def expire_lease(row: Replay) -> None:
    Replay.objects.filter(pk=row.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


STOPPED_REFUSAL = (
    "The worker stopped four times while it imported this file. Nothing was imported. Look for a crash or a lack of "
    "memory in the log of the worker, then upload the file again."
)


@pytest.mark.parametrize("error", [SystemExit(), OperationalError("program limit exceeded")])
def test_queue_import_that_stops_four_workers_is_refused(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def fail_import(*args: object, **options: object) -> Run:
        attempts.append(1)
        raise error

    monkeypatch.setattr(queue, "import_run", fail_import)
    row = queue_import(make_log(), "log.json", owner=None)
    for _ in range(5):
        assert list_waiting_replays() == (row.pk,)
        with suppress(SystemExit):
            run_replay(row.pk, REPLAY_KINDS)
        expire_lease(row)
    assert len(attempts) == 4
    assert list_waiting_replays() == ()
    assert get_import(row.pk).refusal == STOPPED_REFUSAL
    assert list_files() == []


def test_queue_import_with_a_large_member_is_refused_with_the_limit() -> None:
    row = queue_import(
        io.BytesIO(zip_members({"a": bytes(1000), "b": b" " * ((32 << 20) + 1)})), "bundle.zip", owner=None
    )
    run_replay(row.pk, REPLAY_KINDS)
    refusal = get_import(row.pk).refusal
    assert "The member 'b' has 33,554,433 bytes; the limit is 33,554,432. Nothing was imported" in refusal
    assert "Use `manage.py import_bundle FILE`" in refusal


def test_listed_imports_are_waiting_running_or_newly_refused() -> None:
    waiting, running, refused, forgotten, imported = (
        queue_import(make_log(), f"{name}.json", owner=None)
        for name in ("waiting", "running", "refused", "forgotten", "imported")
    )
    Replay.objects.filter(pk=running.pk).update(state=Replay.State.RUNNING, lease=uuid4(), done=1, total=3)
    for row in (refused, forgotten):
        Replay.objects.filter(pk=row.pk).update(state="done", refused="No.", finished_at=timezone.now())
    Replay.objects.filter(pk=forgotten.pk).update(finished_at=timezone.now() - timedelta(hours=25))
    run_replay(imported.pk, REPLAY_KINDS)
    assert [page.row_id for page in get_listed_imports()] == [refused.pk, running.pk, waiting.pk]


def test_remove_orphaned_files_removes_files_after_a_day() -> None:
    queue_import(make_log(), "log.json", owner=None)
    ended = queue_import(make_log(), "log.json", owner=None)
    Replay.objects.filter(pk=ended.pk).update(state=Replay.State.DONE)
    needed, orphan = (
        next(path for path in list_files() if path.name in row.query) for row in Replay.objects.order_by("pk")
    )
    for path in (needed, orphan):
        yesterday = (timezone.now() - timedelta(hours=25)).timestamp()
        os.utime(path, (yesterday, yesterday))
    new_file = needed.with_name("young")
    new_file.write_bytes(b"")
    remove_orphaned_files()
    assert sorted(list_files()) == sorted([needed, new_file])


def test_scheduler_removes_orphaned_import_files() -> None:
    folder = Path(settings.VAR_DIR) / "imports"
    folder.mkdir()
    (folder / "orphan").write_bytes(b"")
    os.utime(folder / "orphan", (0, 0))
    build_schedule().tick()
    assert list_files() == []
    assert list_recent_failures() == ()


def test_import_name_is_that_of_its_file() -> None:
    assert str(queue_import(make_log(), "my log.json", owner=None)) == "import of my log.json"
    assert str(Replay(kind=Replay.REJUDGE, scope_id=7)) == "re-judging of run 7"
    assert str(Replay(kind="cell", scope_id=7)) == "replay of cell 7: original settings"
