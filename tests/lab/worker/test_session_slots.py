"""Slots that trials of a session hand over without the database, within the limit of the provider."""

import threading
from collections.abc import Collection
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings

from tests.lab.conftest import RunInThread
from tests.lab.scripted_runs import (
    answer_correctly,
    answer_on_release,
    launch_run,
    make_scripted_model,
    run_worker_session,
)
from tests.wait import wait_until
from toolbench.lab.models import Run, Trial
from toolbench.lab.runs import control
from toolbench.lab.worker.slots import SlotFuture, Slots, TrialLease
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)
ANSWER_SECONDS = 0.02
TIMEOUT_SECONDS = 30


class LimitedProvider:
    """Answers of a provider that counts the requests in flight and rejects each `rejected`-th one.

    Each answer waits ANSWER_SECONDS for a request above the limit.
    """

    def __init__(self, limit: int, rejected: int) -> None:
        self.max_in_flight = 0
        self._limit, self._rejected = limit, rejected
        self._in_flight = self._count = 0
        self._changed = threading.Condition()

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        with self._changed:
            self._in_flight += 1
            self._count += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
            is_rejected = self._count % self._rejected == 0
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._in_flight > self._limit, timeout=ANSWER_SECONDS)
            self._in_flight -= 1
        return ScriptedReply(429, {"retry-after": "0"}, b"{}") if is_rejected else answer_correctly(seen)


@pytest.fixture
def slot_successors(monkeypatch: pytest.MonkeyPatch) -> list[TrialLease]:
    """Return the list to which each trial that took over a slot is added."""
    trials: list[TrialLease] = []
    original = Slots.take_successors

    def take_successors(slots: Slots, leases: Collection[UUID]) -> list[TrialLease]:
        successors = original(slots, leases)
        trials.extend(successors)
        return successors

    monkeypatch.setattr(Slots, "take_successors", take_successors)
    return trials


@pytest.mark.parametrize("rejected", [10**6, 7], ids=["no 429", "each seventh answer is 429"])
def test_session_handed_over_slots_keep_limit_of_two_workers(
    elsewhere: RunInThread, slot_successors: list[TrialLease], rejected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slots, "_count_wanted", lambda slots: 3)  # else a slow machine claims none ahead
    limit = 4
    provider = LimitedProvider(limit, rejected)
    fields: dict[str, Any] = {"concurrency": limit, "max_attempts": 5}
    with ScriptedServer(provider) as server:
        model = make_scripted_model(server, **fields)
        run = launch_run(model, scenarios=("chat_only",), trials=60)
        sessions = [elsewhere(run_worker_session, model) for _ in range(2)]
        assert sum(session.result() for session in sessions) == 60
    run.refresh_from_db()
    assert (run.state, set(run.trials.values_list("outcome", "execution"))) == (Run.State.FINISHED, {("pass", 1)})
    assert provider.max_in_flight <= limit
    assert slot_successors
    assert not Trial.objects.filter(backing_off=True).exists()
    assert len(server.seen) == run.requests_reserved


def test_session_starts_trials_claimed_ahead_without_handover(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slots, "_hand_over", lambda slots: None)
    monkeypatch.setattr(Slots, "_count_wanted", lambda slots: 2)
    model = make_scripted_model(scripted, concurrency=2)
    run = launch_run(model, scenarios=("chat_only",), trials=5)
    assert run_worker_session(model) == 5
    assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}


def test_session_does_not_hand_over_slot_of_lost_lease(
    elsewhere: RunInThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Slots, "_count_wanted", lambda slots: 2)
    monkeypatch.setattr(settings, "HEARTBEAT_SECONDS", 0.05)
    refused: list[TrialLease] = []
    restore_waiting = Slots.restore_waiting

    def record_refusal(slots: Slots, trial: TrialLease, future: SlotFuture) -> None:
        refused.append(trial)
        restore_waiting(slots, trial, future)

    monkeypatch.setattr(Slots, "restore_waiting", record_refusal)
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking, concurrency=1)
        run = launch_run(model, scenarios=("chat_only",), trials=2)
        session = elsewhere(run_worker_session, model)
        assert blocking.arrived.acquire(timeout=TIMEOUT_SECONDS)
        assert list(run.trials.order_by("backing_off").values_list("backing_off", flat=True)) == [False, True]
        lost = run.trials.get(backing_off=False)
        run.trials.filter(pk=lost.pk).update(lease=uuid4())
        try:
            wait_until(lambda: "its lease was lost" in caplog.text, seconds=TIMEOUT_SECONDS)
            refused.clear()
            # The first refusal may be of an attempt that began before the lease was lost.
            wait_until(lambda: len(refused) >= 2 or len(blocking.seen) > 1, seconds=TIMEOUT_SECONDS)
            assert len(blocking.seen) == 1
            run.trials.filter(pk=lost.pk).update(state="queued", lease=None)
        finally:
            released.set()
        assert session.result(timeout=TIMEOUT_SECONDS) == 2


def test_session_cancels_trial_waiting_for_slot(elsewhere: RunInThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slots, "_count_wanted", lambda slots: 2)
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking, concurrency=1)
        kept, cancelled = (launch_run(model, scenarios=("chat_only",), trials=1) for _ in range(2))
        session = elsewhere(run_worker_session, model)
        assert blocking.arrived.acquire(timeout=TIMEOUT_SECONDS)
        try:
            assert cancelled.trials.filter(state="running", backing_off=True).exists()
            control.cancel_run(cancelled.pk)
            ended = Run.objects.filter(pk=cancelled.pk, state=Run.State.CANCELLED)
            wait_until(ended.exists, seconds=TIMEOUT_SECONDS)
        finally:
            released.set()
        assert session.result(timeout=TIMEOUT_SECONDS) == 2
    assert (kept.trials.get().outcome, cancelled.trials.get().outcome) == ("pass", "cancelled")
    assert len(blocking.seen) == 1
