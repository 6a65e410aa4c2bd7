"""Workers that claim trials of one provider share its slots, and a busy worker asks for another."""

import asyncio
import threading
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial
from tests.lab.conftest import RunInThread
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from toolbench.lab.models import ClaimingWorker, Process, Provider, Run
from toolbench.lab.traces.search_text import TEXT_CPU
from toolbench.lab.worker import fetching
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.lab.worker.pacing import slot_shares
from toolbench.lab.worker.pacing.slot_shares import (
    BUSY_CPU,
    SHARE_TIMEOUT_SECONDS,
    CpuWatch,
    SlotShare,
    SlotSharing,
    measure_cpu_seconds,
    request_another_worker,
)
from toolbench.lab.worker.slots import Slots
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)
TIMEOUT_SECONDS = 60
ANSWER_SECONDS = 0.02
LIMIT = 6  # concurrency limit of the provider


def add_other_worker(provider: Provider, name: str = "worker@other:1", *, age: float = 0.0) -> None:
    seen_at = timezone.now() - timedelta(seconds=age)
    ClaimingWorker.objects.create(provider=provider, worker=name, seen_at=seen_at)


def queue_trials_of_run(provider: Provider, count: int, **settings: Any) -> None:
    """Make a run with this number of queued trials of the provider; without settings, it is running."""
    run = make_run(**{"state": Run.State.RUNNING, **settings})
    cell = make_cell(make_config(run, model=make_model(f"model-{run.pk}", provider=provider)))
    for number in range(count):
        make_trial(cell, "queued", index=number)


def make_sharing(provider_id: int) -> SlotSharing:
    return SlotSharing(provider_id, DatabaseThread(), Slots())


def test_share_of_only_worker_is_unlimited() -> None:
    provider = make_provider(concurrency=7)
    add_other_worker(make_provider("Other"))
    add_other_worker(provider, age=SHARE_TIMEOUT_SECONDS + 1)
    sharing = make_sharing(provider.pk)
    assert [sharing.update(), sharing.update()] == [SlotShare(1, None)] * 2


def test_share_divides_limit_by_workers_until_one_gives_up() -> None:
    provider = make_provider(concurrency=7)
    queue_trials_of_run(provider, 14)
    add_other_worker(provider, "worker@other:1")
    add_other_worker(provider, "worker@other:2")
    sharing = make_sharing(provider.pk)
    assert sharing.update() == SlotShare(3, 3)
    sharing.give_up()
    assert set(ClaimingWorker.objects.values_list("worker", flat=True)) == {"worker@other:1", "worker@other:2"}


@pytest.mark.parametrize(("jobs", "slots"), [((4,), 2), ((4, 3), 4), ((4, None), 5), ((40,), 5)])
def test_share_divides_limits_of_the_runs_if_they_are_lower(jobs: tuple[int | None, ...], slots: int) -> None:
    provider = make_provider("Shared", concurrency=10)
    add_other_worker(provider)
    for limit in jobs:
        queue_trials_of_run(provider, 20, jobs=limit)
    queue_trials_of_run(provider, 1, state=Run.State.PAUSED, jobs=1)
    assert make_sharing(provider.pk).update() == SlotShare(2, slots)


@pytest.mark.parametrize(("queued", "slots"), [(0, None), (7, None), (8, 2)])
def test_share_is_unlimited_with_few_queued_trials(queued: int, slots: int | None) -> None:
    provider = make_provider(concurrency=4)
    add_other_worker(provider)
    queue_trials_of_run(provider, queued)
    queue_trials_of_run(make_provider("Other"), 20)
    assert make_sharing(provider.pk).update() == SlotShare(2, slots)


def test_share_of_deleted_provider_records_nothing() -> None:
    assert make_sharing(10**9).update() == SlotShare()
    assert not ClaimingWorker.objects.exists()


def test_cpu_watch_is_busy_after_two_busy_intervals() -> None:
    clocks = {"cpu": 0.0, "now": 0.0}
    watch = CpuWatch(lambda: clocks["cpu"], lambda: clocks["now"])
    results = []
    for usage in (1.0, BUSY_CPU, 0.5, 1.0, 1.0):
        clocks = {"cpu": clocks["cpu"] + usage, "now": clocks["now"] + 1.0}
        results.append(watch.is_busy())
    assert results == [False, True, False, False, True]


def test_measure_cpu_seconds_omits_search_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = measure_cpu_seconds()
    monkeypatch.setattr(TEXT_CPU, "seconds", TEXT_CPU.seconds + 10_000)
    assert measure_cpu_seconds() < before


@pytest.mark.parametrize(("live_workers", "queued", "is_requested"), [(2, 1, True), (1, 1, False), (2, 0, False)])
def test_request_another_worker_needs_idle_worker_and_queued_trial(
    live_workers: int, queued: int, is_requested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify = mock.Mock()
    monkeypatch.setattr(slot_shares, "notify_workers", notify)
    for number in range(live_workers):
        Process.objects.create(name=f"worker@{number}", kind="worker", host="h", pid=1, seen_at=timezone.now())
    model = make_model()
    cell = make_cell(make_config(make_run(state=Run.State.RUNNING), model=model))
    for _ in range(queued):
        make_trial(cell, "queued")
    request_another_worker(model.provider_id, 1)
    assert notify.call_args_list == [mock.call([model.provider_id])] * is_requested


def test_slot_sharing_asks_for_worker_while_busy_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_shares, "SHARE_SECONDS", 0.01)
    monkeypatch.setattr(CpuWatch, "is_busy", lambda watch: True)
    provider = make_provider(concurrency=9)
    queue_trials_of_run(provider, 18)
    add_other_worker(provider)
    requests: list[tuple[int, int]] = []

    async def follow_share() -> Slots:
        database, slots = DatabaseThread(), Slots()
        sharing = SlotSharing(provider.pk, database, slots)

        def record_request(provider_id: int, worker_count: int) -> None:
            requests.append((provider_id, worker_count))
            sharing.stop()

        monkeypatch.setattr(slot_shares, "request_another_worker", record_request)
        sharing.begin()
        async with asyncio.timeout(30):
            await sharing.run()
        await database.close()
        return slots

    slots = asyncio.run(follow_share())
    assert requests == [(provider.pk, 2)]
    assert slots.build_hints().share == 5


class CountingProvider:
    """Answers that first wait for `is_open`, and then ANSWER_SECONDS for a request above `limit`.

    Attributes:
        in_flight: the number of requests in flight at each request.
    """

    def __init__(self, limit: int) -> None:
        self.in_flight: list[int] = []
        self.is_open = threading.Event()
        self._limit = limit
        self._changed = threading.Condition()
        self._unanswered = 0

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        with self._changed:
            self._unanswered += 1
            self.in_flight.append(self._unanswered)
            self._changed.notify_all()
        assert self.is_open.wait(TIMEOUT_SECONDS)
        with self._changed:
            self._changed.wait_for(lambda: self._unanswered > self._limit, timeout=ANSWER_SECONDS)
            self._unanswered -= 1
        return answer_correctly(seen)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> CountingProvider:
    """Return a provider that answers once a session has a share of its slots."""
    provider, set_share = CountingProvider(LIMIT), Slots.set_share

    def set_share_and_open(slots: Slots, share: int | None) -> None:
        set_share(slots, share)
        if share is not None:
            provider.is_open.set()

    monkeypatch.setattr(Slots, "set_share", set_share_and_open)
    monkeypatch.setattr(Slots, "_count_wanted", lambda slots: 3)  # else a slow machine claims none ahead
    monkeypatch.setattr(slot_shares, "SHARE_SECONDS", 0.02)
    return provider


def test_session_holds_its_share_and_gives_it_up(provider: CountingProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_shares, "SHARE_TIMEOUT_SECONDS", 1000.0)
    with ScriptedServer(provider) as server:
        model = make_scripted_model(server, concurrency=LIMIT)
        add_other_worker(Provider.objects.get())
        run = launch_run(model, scenarios=("chat_only",), trials=60)
        assert run_worker_session(model) == 60
    assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}
    # The first claim takes all slots, since the session has no share yet. Near the end nothing is shared.
    assert max(provider.in_flight[LIMIT : 60 - 3 * LIMIT]) <= LIMIT // 2
    assert list(ClaimingWorker.objects.values_list("worker", flat=True)) == ["worker@other:1"]


def test_two_workers_share_the_slots_within_the_limit(
    provider: CountingProvider, elsewhere: RunInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = threading.local()
    for module in (slot_shares, fetching):
        monkeypatch.setattr(module, "build_process_name", lambda kind: process.name)

    def run_session_as(name: str) -> int:
        process.name = name
        return run_worker_session(model)

    with ScriptedServer(provider) as server:
        model = make_scripted_model(server, concurrency=LIMIT)
        run = launch_run(model, scenarios=("chat_only",), trials=80)
        sessions = [elsewhere(run_session_as, name) for name in ("first", "second")]
        assert sum(session.result(timeout=TIMEOUT_SECONDS) for session in sessions) == 80
    assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}
    assert max(provider.in_flight) <= LIMIT
    assert {name: run.trials.filter(worker=name).count() >= 20 for name in ("first", "second")} == {
        "first": True,
        "second": True,
    }
    assert not ClaimingWorker.objects.exists()
