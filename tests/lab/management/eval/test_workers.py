"""Shifts in this process, and what Ctrl-C means to them."""

import signal

import pytest

from tests.lab.scripted_runs import launch_run, make_scripted_model
from toolbench.lab.management.eval.progress import count_interrupts
from toolbench.lab.management.eval.workers import EvalSessions
from toolbench.lab.models import Run
from toolbench.lab.runs.control import pause_run
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply, ScriptedServer


def test_interrupts_are_counted_and_the_old_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with count_interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        interrupts.wait(60)
    assert interrupts.count == 2
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.django_db(transaction=True)
def test_a_hurry_queues_trials_in_flight_again() -> None:
    with ScriptedServer(lambda seen: ScriptedReply(declared=100, ending=ConnectionEnd.HANG)) as scripted:
        run = launch_run(make_scripted_model(scripted, concurrency=1))
        with EvalSessions(run.pk) as shifts:
            assert shifts.start_sessions()
            scripted.arrived.acquire()
            pause_run(run.pk)
            shifts.stop()
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert set(run.trials.values_list("state", flat=True)) == {"queued"}
    assert not shifts.start_sessions()


@pytest.mark.django_db(transaction=True)
def test_several_providers_are_worked_side_by_side(scripted: ScriptedServer) -> None:
    run = launch_run(make_scripted_model(scripted, "one"), make_scripted_model(scripted, "two"))
    with EvalSessions(run.pk) as shifts:
        while shifts.start_sessions():
            scripted.stopping.wait(0.05)
    run.refresh_from_db()
    assert (run.state, run.trials.filter(outcome="pass").count()) == (Run.State.FINISHED, 6)


@pytest.mark.django_db(transaction=True)
def test_a_method_left_open_is_probed_here_before_its_trials_begin(scripted: ScriptedServer) -> None:
    run = launch_run(make_scripted_model(scripted), methods=("auto",))
    with EvalSessions(run.pk) as shifts:
        while shifts.start_sessions():
            scripted.stopping.wait(0.05)

    assert run.configs.get().routing["asked"] == "auto"
    assert set(run.trials.values_list("state", flat=True)) == {"done"}
