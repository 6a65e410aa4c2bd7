"""Problems of an installation, each with a sentence, its figures and what to do."""

import time
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from tests.factories import (
    make_cell,
    make_config,
    make_gateway_trace,
    make_model,
    make_pace,
    make_provider,
    make_run,
    make_trial,
)
from toolbench.lab.metrics.cells import recompute_stale
from toolbench.lab.models import Cell, Process, Provider, Run, RunConfig, Trial
from toolbench.lab.operations.problems import HealthProblem, find_problems
from toolbench.lab.operations.storage_space import DiskSpace, StorageSpace
from toolbench.lab.worker import health
from toolbench.lab.worker.health import get_health, record_heartbeat, remove_heartbeat

pytestmark = pytest.mark.django_db
AMPLE = StorageSpace((), 0, 0, 0, DiskSpace("/data", 10**12, 9 * 10**11))


def list_problems(space: StorageSpace = AMPLE) -> dict[str, HealthProblem]:
    return {problem.code: problem for problem in find_problems(get_health(), space)}


def make_process(kind: str, *, host: str = "h", silent_seconds: float = 1, **fields: float) -> None:
    seen_at = timezone.now() - timedelta(seconds=silent_seconds)
    name = f"{kind}@{host}:{Process.objects.count()}"
    Process.objects.create(name=name, kind=kind, host=host, pid=1, seen_at=seen_at, **fields)


def make_queued(**fields: object) -> Trial:
    run = make_run(state=Run.State.RUNNING, trial_count=1)
    trial = make_trial(make_cell(make_config(run)), "queued", **fields)
    Trial.objects.filter(pk=trial.pk).update(queued_at=timezone.now() - timedelta(minutes=9))
    recompute_stale()
    return trial


def test_find_problems_of_new_installation_is_empty() -> None:
    assert list_problems() == {}


def test_find_problems_with_live_processes_is_empty() -> None:
    record_heartbeat("worker")
    record_heartbeat("scheduler")
    assert list_problems() == {}


def test_find_problems_names_silent_worker_and_missing_scheduler() -> None:
    make_process("worker", host="alpha", silent_seconds=600)
    found = list_problems()
    assert found["silent"].title == "1 process stopped sending heartbeats"
    assert "worker@alpha:0 (10 min ago)" in found["silent"].sentence
    assert "No scheduler" in found["scheduler"].title


def test_find_problems_names_replaced_process_for_an_hour() -> None:
    make_process("scheduler")
    make_process("worker")
    make_process("worker", silent_seconds=600)
    make_process("worker", silent_seconds=7_000)
    found = list_problems()
    assert list(found) == ["ended"]
    assert "(10 min ago)" in found["ended"].sentence
    assert "(2 h ago)" not in found["ended"].sentence


def test_find_problems_ignores_process_that_stopped_normally() -> None:
    record_heartbeat("scheduler")
    record_heartbeat("worker")
    remove_heartbeat("worker")
    assert [process.kind for process in get_health().processes] == ["scheduler"]
    assert list_problems() == {}


def test_find_problems_names_host_with_wrong_clock() -> None:
    make_process("scheduler")
    make_process("worker", host="Late-VM", clock_offset_ms=-61_000)
    make_process("worker", host="exact", clock_offset_ms=900)
    clock = list_problems()["clock"]
    assert clock.sentence.startswith("By the database's clock, Late-VM is 61 s behind.")


def test_record_heartbeat_stores_clock_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    hour_seconds = 3_600
    monkeypatch.setattr(health, "time", SimpleNamespace(time=lambda: time.time() - hour_seconds))
    record_heartbeat("worker")
    offset_seconds = Process.objects.get().clock_offset_ms / 1_000
    assert -hour_seconds - 60 < offset_seconds < -hour_seconds + 60


def test_find_problems_names_waiting_trials_with_reason() -> None:
    make_queued()
    assert list_problems() == {}  # without a worker, the page says only that
    make_process("worker")
    make_process("scheduler")
    Provider.objects.update(paused_reason="The key was refused.")
    queue = list_problems()["queue"]
    assert queue.title == "Trials of Example wait"
    assert "has waited 9 min and none is running. The key was refused." in queue.sentence


@pytest.mark.parametrize("reason", ["running", "paused", "probe", "held"])
def test_find_problems_ignores_trials_with_reason_to_wait(reason: str) -> None:
    trial = make_queued()
    make_process("worker")
    make_process("scheduler")
    if reason == "running":
        make_trial(trial.cell, "running", lease_until=timezone.now() + timedelta(minutes=1))
        recompute_stale()
    elif reason == "paused":
        Run.objects.update(state=Run.State.PAUSED)
    elif reason == "held":
        Provider.objects.update(adaptive=True)
        make_pace(make_provider(), held_until=timezone.now() + timedelta(minutes=30))
    else:
        RunConfig.objects.update(awaits_probe=True)
    assert list_problems() == {}


def test_find_problems_counts_expired_leases_and_stale_cells() -> None:
    run = make_run(finished_at=timezone.now() - timedelta(minutes=5))
    cell = make_cell(make_config(run))
    make_trial(cell, "running", lease_until=timezone.now() - timedelta(minutes=5))
    found = list_problems()
    assert found["sessions"].title == "1 trial of ended worker sessions was not requeued"
    assert found["stale"].title == "1 cell of ended runs was not recomputed"
    Cell.objects.update(stale=False)
    Trial.objects.update(lease_until=timezone.now())
    assert list_problems() == {}


def test_find_problems_names_disk_that_is_nearly_full() -> None:
    disk = DiskSpace("/data", 10**12, 9 * 10**11)
    growing = StorageSpace((), trial_bytes=10**12, trials=1_000, recent_trials=1_400, disk=disk)
    assert "full in 4.5 days" in list_problems(growing)["disk"].sentence
    assert list_problems(replace(AMPLE, disk=None)) == {}
    small = DiskSpace("/data", 10**12, 10**10)
    assert "9.3\xa0GB of 931.3\xa0GB" in list_problems(replace(AMPLE, disk=small))["disk"].sentence


def test_find_problems_names_overdue_search_text_of_trial() -> None:
    finished = timezone.now() - timedelta(hours=3)
    make_trial(make_cell(make_config(make_run(), make_model(provider=make_provider()))), finished_at=finished)
    Trial.objects.update(queued_at=finished)
    recompute_stale()
    assert "has waited 3 h for its search text" in list_problems()["search"].sentence


def test_find_problems_names_overdue_search_text_of_gateway_trace() -> None:
    make_gateway_trace(at=timezone.now() - timedelta(hours=3))
    assert "A gateway trace has waited 3 h" in list_problems()["gateway_search"].sentence
