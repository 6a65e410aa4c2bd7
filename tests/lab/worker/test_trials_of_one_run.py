"""Claiming by a worker session: a run's own concurrency limit, and a run that was cancelled and resumed."""

import threading

import pytest

from tests.lab.conftest import RunInThread
from tests.lab.scripted_runs import answer_on_release, launch_run, make_scripted_model, run_worker_session
from tests.wait import wait_until
from toolbench.lab.models import Run, Trial
from toolbench.lab.runs import control
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_session_back_off_frees_no_slot_of_a_run_with_its_own_limit() -> None:
    with ScriptedServer(lambda seen: ScriptedReply(429, {"retry-after": "0.3"}, b"{}")) as busy:
        model = make_scripted_model(busy, concurrency=8, max_attempts=2)
        launch_run(model, scenarios=("chat_only",), trials=3, jobs=1)
        run_worker_session(model)
        prompts = [seen.json()["messages"][-1]["content"] for seen in busy.seen]
    assert len(prompts) == 6
    # The second attempt of a trial comes before the next trial.
    assert prompts[::2] == prompts[1::2]


def test_session_runs_trials_of_a_run_that_was_cancelled_and_resumed(elsewhere: RunInThread) -> None:
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as slow:
        model = make_scripted_model(slow, concurrency=2)
        cancelled, _ = (launch_run(model, scenarios=("chat_only",), trials=1) for _ in range(2))
        session = elsewhere(run_worker_session, model)
        wait_until(lambda: len(slow.seen) == 2)
        control.cancel_run(cancelled.pk)
        wait_until(lambda: Run.objects.get(pk=cancelled.pk).state == Run.State.CANCELLED)
        control.resume_cancelled_run(cancelled.pk)
        wait_until(lambda: len(slow.seen) == 3)
        released.set()
        session.result()
    assert set(Trial.objects.values_list("outcome", flat=True)) == {"pass"}
    assert Trial.objects.get(run=cancelled).execution == 2
