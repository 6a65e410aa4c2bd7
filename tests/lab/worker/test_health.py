"""Liveness is a heartbeat, not an exit code."""

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


def make_heartbeat(ago: timedelta, kind: str = "worker") -> None:
    seen = timezone.now() - ago
    Process.objects.create(name=f"{kind}@{ago}", kind=kind, host="h", pid=1, seen_at=seen)


def test_a_worker_is_alive_while_it_beats() -> None:
    make_heartbeat(timedelta(seconds=5))
    assert get_health().has_worker


def test_a_silent_worker_is_shown_and_does_not_count() -> None:
    make_heartbeat(timedelta(minutes=5))
    make_heartbeat(timedelta(seconds=1), kind="scheduler")
    health = get_health()
    assert not health.has_worker
    assert [line.is_alive for line in health.processes] == [True, False]


def test_processes_of_yesterday_are_forgotten() -> None:
    make_heartbeat(timedelta(days=2))
    assert get_health().processes == ()


def test_health_tells_whether_trials_are_queued() -> None:
    assert not get_health().has_queued_trials
    make_trial(make_cell(make_config(make_run())), "queued")
    assert get_health().has_queued_trials


def test_turns_on_text_json_are_counted_over_real_runs_that_are_kept() -> None:
    for fields in ({}, {"simulated": True}, {"deleted_at": timezone.now()}):
        run = make_run(**fields)
        make_trial(make_cell(make_config(run)), fallback_turns=3)
        make_trial(make_cell(make_config(run)), fallback_turns=0)
    recompute_stale()
    health = get_health()
    assert (health.fallback_turns, health.fallback_runs) == (3, 1)


pytestmark = pytest.mark.django_db


def test_a_process_has_one_row_however_often_it_beats() -> None:
    record_heartbeat("worker")
    record_heartbeat("worker", loop_lag_ms=12.5)
    process = Process.objects.get()
    assert (process.kind, process.pid, process.loop_lag_ms) == ("worker", os.getpid(), 12.5)
    (silent,) = get_heartbeat_ages("worker").values()
    assert silent < 60


def test_the_command_fails_when_nobody_is_alive(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="No worker sent a heartbeat"):
        call_command("liveness")
    record_heartbeat("worker")
    call_command("liveness", "worker")
    assert f":{os.getpid()} " in capsys.readouterr().out
