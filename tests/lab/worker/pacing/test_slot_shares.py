"""Workers that claim trials of one provider share its slots, and a busy worker asks for another."""

import asyncio
import threading
import time
from datetime import timedelta
from unittest import mock

import pytest
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from toolbench.lab.models import ClaimingWorker, Process, Provider, Run
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.lab.worker.pacing import slot_shares
from toolbench.lab.worker.pacing.slot_shares import (
    BUSY_CPU,
    SHARE_TIMEOUT_SECONDS,
    CpuWatch,
    SlotShare,
    SlotSharing,
    give_up_share,
    request_another_worker,
    share_slots,
)
from toolbench.lab.worker.slots import Slots
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


def add_other_worker(provider: Provider, name: str = "worker@other:1", *, age: float = 0.0) -> None:
    seen_at = timezone.now() - timedelta(seconds=age)
    ClaimingWorker.objects.create(provider=provider, worker=name, seen_at=seen_at)


def test_share_slots_of_only_worker_is_unlimited() -> None:
    provider = make_provider(concurrency=7)
    add_other_worker(make_provider("Other"))
    add_other_worker(provider, age=SHARE_TIMEOUT_SECONDS + 1)
    assert [share_slots(provider.pk), share_slots(provider.pk)] == [SlotShare(1, None)] * 2


def test_share_slots_divides_limit_by_workers_until_one_gives_up() -> None:
    provider = make_provider(concurrency=7)
    add_other_worker(provider, "worker@other:1")
    add_other_worker(provider, "worker@other:2")
    assert share_slots(provider.pk) == SlotShare(3, 3)
    give_up_share(provider.pk)
    assert set(ClaimingWorker.objects.values_list("worker", flat=True)) == {"worker@other:1", "worker@other:2"}


def test_share_slots_of_deleted_provider_records_nothing() -> None:
    assert share_slots(10**9) == SlotShare()
    assert not ClaimingWorker.objects.exists()


def test_cpu_watch_is_busy_after_two_busy_intervals() -> None:
    clocks = {"cpu": 0.0, "now": 0.0}
    watch = CpuWatch(lambda: clocks["cpu"], lambda: clocks["now"])
    results = []
    for usage in (1.0, BUSY_CPU, 0.5, 1.0, 1.0):
        clocks = {"cpu": clocks["cpu"] + usage, "now": clocks["now"] + 1.0}
        results.append(watch.is_busy())
    assert results == [False, True, False, False, True]


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
    add_other_worker(provider)
    requests: list[tuple[int, int]] = []

    async def follow_share() -> Slots:
        database, slots = DatabaseThread(), Slots()
        sharing = SlotSharing(provider.pk, database, slots)

        def record_request(provider_id: int, worker_count: int) -> None:
            requests.append((provider_id, worker_count))
            sharing.stop()

        monkeypatch.setattr(slot_shares, "request_another_worker", record_request)
        async with asyncio.timeout(30):
            await sharing.run()
        await database.close()
        return slots

    slots = asyncio.run(follow_share())
    assert requests == [(provider.pk, 2)]
    assert slots.build_hints().share == 5


class CountingProvider:
    """Answers that take 50 ms. `in_flight` has the requests in flight at each request."""

    def __init__(self) -> None:
        self.in_flight: list[int] = []
        self._lock = threading.Lock()
        self._unanswered = 0

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        with self._lock:
            self._unanswered += 1
            self.in_flight.append(self._unanswered)
        time.sleep(0.05)
        with self._lock:
            self._unanswered -= 1
        return answer_correctly(seen)


def test_session_holds_its_share_and_gives_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_shares, "SHARE_TIMEOUT_SECONDS", 1000.0)
    monkeypatch.setattr(Slots, "_count_wanted", lambda slots: 3)  # else a slow machine claims none ahead
    with ScriptedServer(provider := CountingProvider()) as server:
        model = make_scripted_model(server, concurrency=4)
        add_other_worker(Provider.objects.get())
        run = launch_run(model, scenarios=("chat_only",), trials=20)
        assert run_worker_session(model) == 20
    assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}
    assert max(provider.in_flight[4:]) <= 2  # the first claim may take all slots, before the session has a share
    assert list(ClaimingWorker.objects.values_list("worker", flat=True)) == ["worker@other:1"]
