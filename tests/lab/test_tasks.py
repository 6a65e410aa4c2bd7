"""Celery tasks, whose exceptions are counted and not raised."""

from collections.abc import Callable
from typing import Any

import pytest
from celery.signals import worker_ready

from tests.lab.scripted_runs import launch_run, make_scripted_model
from toolbench.celery import app
from toolbench.lab import tasks
from toolbench.lab.maintenance import sweep
from toolbench.lab.models import JobFailure
from toolbench.lab.worker import health, session
from toolbench.lab.worker.queue import PROBE_TASK, REPLAY_TASK, SESSION_TASK
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)
TASKS = sorted(name for name in app.tasks if name.startswith("toolbench."))


def fail(*_: object, **__: object) -> Any:
    raise KeyError("injected")


@pytest.mark.parametrize("name", TASKS)
def test_task_failure_is_counted_and_not_raised(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, function in (
        (tasks.session_registry, "run_session"),
        (tasks, "run_probe"),
        (tasks, "run_replay"),
        (health, "record_heartbeat"),
    ):
        monkeypatch.setattr(place, function, fail)
    task: Callable[..., None] = app.tasks[name]
    task() if name.endswith("beat") else task(1)
    failure = JobFailure.objects.get()
    assert (failure.error, failure.count) == ("KeyError", 1)


@pytest.mark.parametrize("name", [SESSION_TASK, PROBE_TASK, REPLAY_TASK])
def test_task_forwarded_to_another_host_runs_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for function in ("forward_session", "forward_probe", "forward_replay"):
        monkeypatch.setattr(tasks, function, lambda _: True)
    for place, function in ((tasks.session_registry, "run_session"), (tasks, "run_probe"), (tasks, "run_replay")):
        monkeypatch.setattr(place, function, fail)
    app.tasks[name](1)
    assert not JobFailure.objects.exists()


def test_run_session_task_failure_is_counted_and_sweep_notifies_again(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=1)
    with monkeypatch.context() as patch:
        patch.setattr(session.WorkerSession, "_drain", fail)
        tasks.run_session_task(model.provider_id)
    failure = JobFailure.objects.get()
    assert (failure.job, failure.provider_name, failure.error) == ("a worker session", "scripted", "KeyError")
    run.trials.update(state="queued", lease=None)
    assert sweep().notified == (model.provider_id,)
    tasks.run_session_task(model.provider_id)
    assert run.trials.get().outcome == "pass"


def test_started_worker_is_alive_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for function in ("freeze_loaded_objects", "collect_rarely"):
        monkeypatch.setattr(tasks, function, lambda: None)
    worker_ready.send(sender=None)
    assert health.count_live_workers() == 1
