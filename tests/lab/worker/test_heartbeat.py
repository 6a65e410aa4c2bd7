import os

import pytest
from django.core.management import CommandError, call_command

from toolbench.lab.models import Process
from toolbench.lab.worker.heartbeat import get_heartbeat_ages, record_heartbeat

pytestmark = pytest.mark.django_db


def test_a_process_has_one_row_however_often_it_beats() -> None:
    record_heartbeat("worker")
    record_heartbeat("worker", loop_lag_ms=12.5)
    process = Process.objects.get()
    assert (process.kind, process.pid, process.loop_lag_ms) == ("worker", os.getpid(), 12.5)
    (silent,) = get_heartbeat_ages("worker").values()
    assert silent < 60


def test_the_command_fails_when_nobody_is_alive(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="No worker showed a sign of life"):
        call_command("liveness")
    record_heartbeat("worker")
    call_command("liveness", "worker")
    assert f":{os.getpid()} " in capsys.readouterr().out
