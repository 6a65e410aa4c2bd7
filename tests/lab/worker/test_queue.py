import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis import Redis

from tests.factories import make_model
from tests.lab.scripted_runs import launch_run
from toolbench.celery import app
from toolbench.lab.models import Probe, Process, Provider, Replay, ServiceAddress, Trial
from toolbench.lab.worker import queue
from toolbench.lab.worker.queue import queue_trials

pytestmark = pytest.mark.django_db

COLUMNS = [field.attname for field in Trial._meta.concrete_fields if field.attname not in ("id", "queued_at")]


@pytest.fixture
def broker() -> Iterator[Redis]:
    """Yield the broker, emptied before and after the test."""
    broker = Redis.from_url(settings.REDIS_URL)
    broker.flushdb()
    yield broker
    broker.flushdb()


def make_worker(host: str, *, silence: timedelta = timedelta(0)) -> None:
    Process.objects.create(name=f"worker@{host}:1", kind="worker", host=host, pid=1, seen_at=timezone.now() - silence)


def make_local_provider(host: str) -> Provider:
    """Make a provider whose models are served on that host for its own workers."""
    ServiceAddress.objects.create(name="there", host=host, url="http://127.0.0.1:9", ready_at=timezone.now())
    return Provider.objects.create(name="There", kind="local", service="there")


def test_notify_workers_message_is_valid_for_clock_an_hour_ahead(broker: Redis) -> None:
    queue.notify_workers([1])
    expires = datetime.fromisoformat(json.loads(broker.lrange("celery", 0, -1)[0])["headers"]["expires"])
    assert expires > datetime.now(UTC) + timedelta(hours=1)


def test_request_heartbeats_sends_one_message_per_live_worker(broker: Redis) -> None:
    queue.request_heartbeats()
    assert broker.llen("celery") == 1
    for number in range(3):
        make_worker(f"host-{number}")
    make_worker("gone", silence=timedelta(minutes=2))
    queue.request_heartbeats()
    assert broker.llen("celery") == 1 + 3


def test_forward_session_and_probe_reach_host_of_local_server(broker: Redis) -> None:
    provider = make_local_provider("host-2")
    model = make_model(provider=provider)
    probe = Probe.objects.create(provider=provider, model=model)
    make_worker("host-2")
    assert queue.forward_session(provider.pk)
    assert queue.forward_probe(probe.pk)
    tasks = [json.loads(message)["headers"]["task"] for message in broker.lrange("host-host-2", 0, -1)]
    assert sorted(tasks) == sorted([queue.SESSION_TASK, queue.PROBE_TASK])


def test_forward_replay_sends_import_to_host_of_its_file(broker: Redis) -> None:
    remote_import, local_import = (
        Replay.objects.create(kind=Replay.IMPORT, scope_id=0, query=f"file=ab&host={host}&name=run.zip")
        for host in ("host-2", socket.gethostname())
    )
    assert not queue.forward_replay(remote_import.pk)
    make_worker("host-2")
    make_worker(socket.gethostname())
    assert queue.forward_replay(remote_import.pk)
    assert not queue.forward_replay(local_import.pk)
    assert broker.llen("host-host-2") == 1


def test_forward_runs_nothing_here_if_broker_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("the broker is away")

    provider = make_local_provider("host-2")
    probe = Probe.objects.create(provider=provider, model=make_model(provider=provider))
    replay = Replay.objects.create(kind=Replay.IMPORT, scope_id=0, query="file=ab&host=host-2&name=run.zip")
    make_worker("host-2")
    monkeypatch.setattr(app, "send_task", fail)
    assert queue.forward_session(provider.pk)
    assert queue.forward_probe(probe.pk)
    assert queue.forward_replay(replay.pk)
    assert not queue.forward_session(make_model().provider_id)


def test_forward_session_and_probe_without_worker_send_nothing(broker: Redis) -> None:
    provider = make_local_provider("host-2")
    make_worker("host-2", silence=timedelta(minutes=2))
    make_worker("host-3")
    assert not queue.forward_session(provider.pk)
    assert not queue.forward_probe(0)
    assert broker.keys("*host-2*") == []


def test_queue_trials_writes_same_rows_as_bulk_create() -> None:
    run = launch_run(make_model(), scenarios=("happy_path", "chat_only"), trials=2)
    trials = list(run.trials.all())
    for trial in trials:
        trial.position += 100
    trials[0].outcome, trials[0].verdict, trials[0].final_text = "na", {"rule": 'it\'s "quoted"'}, b"\x00\xff"
    written = run.trials.filter(position__gte=100)
    queue_trials([])
    queue_trials(trials)
    queued_rows = list(written.values(*COLUMNS))
    written.delete()
    for trial in trials:
        trial.pk = None
    Trial.objects.bulk_create(trials)
    assert queued_rows == list(written.values(*COLUMNS))
