import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.utils import timezone

from tests.lab.conftest import RunInThread
from tests.lab.scripted_runs import (
    answer_correctly,
    build_session_options,
    launch_run,
    make_scripted_model,
    run_worker_session,
)
from tests.wait import wait_until
from toolbench.lab.models import Provider, ProviderPace, Run, Step
from toolbench.lab.worker.pacing.state import PaceState
from toolbench.lab.worker.session import run_session
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, error_reply

pytestmark = pytest.mark.django_db(transaction=True)


class SomeRejections:
    """Correct answers, but for four of the first eight requests, which are rejected."""

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.Lock()

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        with self._lock:
            self._count += 1
            is_rejected = 4 < self._count <= 8
        return error_reply(429, "Too many requests") if is_rejected else answer_correctly(seen)


def answer_with(headers: dict[str, str]) -> Callable[[ReceivedRequest], ScriptedReply]:
    def answer(seen: ReceivedRequest) -> ScriptedReply:
        reply = answer_correctly(seen)
        return ScriptedReply(reply.status, reply.headers | headers, reply.body)

    return answer


def read_state(run: Run) -> PaceState:
    return PaceState.from_json(ProviderPace.objects.get(provider=run.configs.get().provider).state)


def test_pacer_adaptive_session_records_overload_after_rejections() -> None:
    with ScriptedServer(SomeRejections()) as limited:
        model = make_scripted_model(limited, concurrency=20, adaptive=True, max_attempts=6)
        run = launch_run(model, trials=12)
        run_worker_session(model)
    assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}
    assert read_state(run).overloaded_at > 0
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert run.requests_reserved == Step.objects.filter(trial__run=run, kind="exchange").count()


def test_pacer_keeps_requests_per_minute(scripted: ScriptedServer) -> None:
    received: list[float] = []

    def answer(seen: ReceivedRequest) -> ScriptedReply:
        received.append(time.time())
        return answer_correctly(seen)

    with ScriptedServer(answer) as recording:
        model = make_scripted_model(recording, concurrency=9, requests_per_minute=120)
        run = launch_run(model, trials=2)
        run_worker_session(model)
    assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}
    assert len(received) == 6
    first = run.trials.order_by("started_at").values_list("started_at", flat=True)[0]
    assert first is not None
    assert all(at - first.timestamp() >= 0.5 * place for place, at in enumerate(received))


def test_pacer_waits_do_not_count_toward_deadline(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, requests_per_minute=60)
    run = launch_run(model, trials=1, deadline_seconds=2.0)
    run_worker_session(model)
    assert len(scripted.seen) == 3  # the third one no earlier than two seconds after the first one
    assert run.trials.get().outcome == "pass"


@pytest.mark.parametrize(
    ("remaining_name", "reset_name"),
    [
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    ],
)
def test_pacer_pauses_when_headers_report_nothing_remaining(remaining_name: str, reset_name: str) -> None:
    headers = {remaining_name: "0", reset_name: "300ms"}
    with ScriptedServer(answer_with(headers)) as stating:
        model = make_scripted_model(stating, adaptive=True)
        run = launch_run(model, trials=2)
        run_worker_session(model)
    assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}
    assert read_state(run).held_until > 0


def test_pacer_ends_long_pause_when_adaptive_is_switched_off(elsewhere: RunInThread) -> None:
    count, is_held = itertools.count(), threading.Event()

    def answer(seen: ReceivedRequest) -> ScriptedReply:
        if next(count) == 0:
            reply = error_reply(429, "Too many requests")
            return replace(reply, headers=reply.headers | {"retry-after": "5000"})
        assert is_held.wait(60)  # so the other trial cannot end before the pause begins
        return answer_correctly(seen)

    with ScriptedServer(answer) as limited:
        model = make_scripted_model(limited, adaptive=True, max_attempts=1)
        run, claiming_ended = launch_run(model, trials=2), threading.Event()
        options = build_session_options(0.5, on_claiming_ended=claiming_ended.set)
        session = elsewhere(run_session, model.provider_id, options)
        assert claiming_ended.wait(60)
        wait_until(lambda: ProviderPace.objects.exists() and read_state(run).held_until > time.time() + 3000)
        assert read_state(run).held_until < time.time() + 3600
        is_held.set()
        assert run.trials.filter(state="running").exists()
        Provider.objects.update(adaptive=False)
        assert session.result(60) == 2
    assert sorted(run.trials.values_list("outcome", flat=True)) == ["infra", "pass"]
    assert ProviderPace.objects.get().held_until > timezone.now()


def test_pacer_without_settings_stores_no_pace(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    launch_run(model, trials=2)
    run_worker_session(model)
    assert not ProviderPace.objects.exists()
