"""Health by heartbeats: live and silent processes, queued trials, fallback turns."""

import os
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.factories import make_cell, make_config, make_run, make_trial
from toolbench.lab.metrics.cells import recompute_stale
from toolbench.lab.models import Process
from toolbench.lab.worker.health import get_health, get_heartbeat_ages, record_heartbeat

pytestmark = pytest.mark.django_db


def make_heartbeat(age: timedelta, kind: str = "worker") -> None:
    seen_at = timezone.now() - age
    Process.objects.create(name=f"{kind}@{age}", kind=kind, host="h", pid=1, seen_at=seen_at)


def test_get_health_recent_heartbeat_counts_as_worker() -> None:
    make_heartbeat(timedelta(seconds=5))
    assert get_health().has_worker


def test_get_health_silent_worker_is_listed_as_down() -> None:
    make_heartbeat(timedelta(minutes=5))
    make_heartbeat(timedelta(seconds=1), kind="scheduler")
    health = get_health()
    assert not health.has_worker
    assert [line.is_alive for line in health.processes] == [True, False]


def test_get_health_omits_process_silent_for_two_days() -> None:
    make_heartbeat(timedelta(days=2))
    assert get_health().processes == ()


def test_get_health_reports_queued_trials() -> None:
    assert not get_health().has_queued_trials
    make_trial(make_cell(make_config(make_run())), "queued")
    assert get_health().has_queued_trials


def test_get_health_counts_fallback_turns_of_real_runs_only() -> None:
    for fields in ({}, {"simulated": True}, {"deleted_at": timezone.now()}):
        run = make_run(**fields)
        make_trial(make_cell(make_config(run)), fallback_turns=3)
        make_trial(make_cell(make_config(run)), fallback_turns=0)
    recompute_stale()
    health = get_health()
    assert (health.fallback_turns, health.fallback_runs) == (3, 1)


def test_record_heartbeat_keeps_one_row_per_process() -> None:
    record_heartbeat("worker")
    record_heartbeat("worker", loop_lag_ms=12.5)
    process = Process.objects.get()
    assert (process.kind, process.pid, process.loop_lag_ms) == ("worker", os.getpid(), 12.5)
    (age_seconds,) = get_heartbeat_ages("worker").values()
    assert age_seconds < 60


def test_liveness_command_without_heartbeat_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="No worker sent a heartbeat"):
        call_command("liveness")
    record_heartbeat("worker")
    call_command("liveness", "worker")
    assert f":{os.getpid()} " in capsys.readouterr().out
