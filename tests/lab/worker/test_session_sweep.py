"""A session stores its trials while its sweep writes search texts or repairs lost work."""

import threading

import pytest
from django.conf import settings

from tests.lab.conftest import RunInThread
from tests.lab.scripted_runs import answer_on_release, launch_run, make_scripted_model
from tests.wait import wait_until
from toolbench.lab.maintenance import check_runs
from toolbench.lab.worker.session import SessionOptions, run_session
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)
TIMEOUT_SECONDS = 30


def test_session_stores_trials_while_it_sweeps(elsewhere: RunInThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SWEEP_SECONDS", 0.01)
    is_sweeping, answer, end_sweep = threading.Event(), threading.Event(), threading.Event()

    def sweep_until_released(*, with_counts: bool) -> None:
        is_sweeping.set()
        assert end_sweep.wait(TIMEOUT_SECONDS)

    with ScriptedServer(lambda seen: answer_on_release(answer, seen)) as server:
        model = make_scripted_model(server)
        run = launch_run(model, scenarios=("chat_only",), trials=2)
        options = SessionOptions(TIMEOUT_SECONDS, check_runs=check_runs, sweep=sweep_until_released)
        session = elsewhere(run_session, model.provider_id, options)
        try:
            assert is_sweeping.wait(TIMEOUT_SECONDS)
            answer.set()
            wait_until(lambda: run.trials.filter(outcome="pass").count() == 2, seconds=TIMEOUT_SECONDS)
        finally:
            answer.set()
            end_sweep.set()
        assert session.result(timeout=TIMEOUT_SECONDS) == 2
