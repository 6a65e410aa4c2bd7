"""Worker sessions of `manage.py eval`, and the effect of Ctrl-C."""

import signal
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from tests.lab.scripted_runs import launch_run, make_scripted_model
from toolbench.lab.management.eval.progress import count_interrupts
from toolbench.lab.management.eval.workers import EvalSessions
from toolbench.lab.models import Run
from toolbench.lab.runs.control import pause_run
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply, ScriptedServer


def test_count_interrupts_counts_and_restores_the_old_handler() -> None:
    handler_before = signal.getsignal(signal.SIGINT)
    with count_interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        interrupts.wait(60)
    assert interrupts.count == 2
    assert signal.getsignal(signal.SIGINT) is handler_before


@pytest.mark.django_db(transaction=True)
def test_eval_sessions_stop_requeues_trials_in_flight() -> None:
    with ScriptedServer(lambda seen: ScriptedReply(declared=100, ending=ConnectionEnd.HANG)) as scripted:
        run = launch_run(make_scripted_model(scripted, concurrency=1))
        with EvalSessions(run.pk) as sessions:
            assert sessions.start_sessions()
            scripted.arrived.acquire()
            pause_run(run.pk)
            sessions.stop()
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert set(run.trials.values_list("state", flat=True)) == {"queued"}
    assert not sessions.start_sessions()


@pytest.mark.django_db(transaction=True)
def test_eval_sessions_run_the_trials_of_a_killed_process(scripted: ScriptedServer) -> None:
    run = launch_run(make_scripted_model(scripted))
    expired = {"lease": uuid4(), "lease_until": timezone.now() - timedelta(minutes=1)}
    run.trials.update(state="running", execution=1, worker="killed", **expired)
    with EvalSessions(run.pk) as sessions:
        for _ in range(600):
            if not sessions.start_sessions():
                break
            scripted.stopping.wait(0.05)
    assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}


@pytest.mark.django_db(transaction=True)
def test_eval_sessions_serve_several_providers(scripted: ScriptedServer) -> None:
    run = launch_run(make_scripted_model(scripted, "one"), make_scripted_model(scripted, "two"))
    with EvalSessions(run.pk) as sessions:
        while sessions.start_sessions():
            scripted.stopping.wait(0.05)
    run.refresh_from_db()
    assert (run.state, run.trials.filter(outcome="pass").count()) == (Run.State.FINISHED, 6)


@pytest.mark.django_db(transaction=True)
def test_eval_sessions_probe_an_auto_method_before_its_trials(scripted: ScriptedServer) -> None:
    run = launch_run(make_scripted_model(scripted), methods=("auto",))
    with EvalSessions(run.pk) as sessions:
        while sessions.start_sessions():
            scripted.stopping.wait(0.05)

    assert run.configs.get().routing["asked"] == "auto"
    assert set(run.trials.values_list("state", flat=True)) == {"done"}
