import threading

import pytest
from django.conf import settings

from tests.lab.conftest import RunInThread
from tests.lab.scripted_runs import answer_correctly, answer_on_release, launch_run, make_scripted_model
from toolbench.celery import app
from toolbench.lab.maintenance import check_runs, sweep
from toolbench.lab.worker.session_registry import SessionRegistry
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_session_registry_runs_one_session_per_provider(elsewhere: RunInThread) -> None:
    released = threading.Event()
    with ScriptedServer(lambda seen: answer_on_release(released, seen)) as blocking:
        model = make_scripted_model(blocking, concurrency=1)
        run = launch_run(model, scenarios=("chat_only",), trials=8)
        sessions = SessionRegistry(check_runs=check_runs, sweep=sweep)
        first = elsewhere(sessions.run_session, model.provider_id)
        try:
            assert blocking.arrived.acquire(timeout=30)
            assert elsewhere(sessions.run_session, model.provider_id).result(timeout=30) == 0
        finally:
            released.set()
        assert first.result() == 8
    assert run.trials.filter(execution=1, outcome="pass").count() == 8


def test_session_registry_stopped_starts_no_session(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    launch_run(model)
    sessions = SessionRegistry(check_runs=check_runs, sweep=sweep)
    sessions.stop()
    assert sessions.run_session(model.provider_id) == 0


def test_session_registry_deleted_provider_returns_zero() -> None:
    assert SessionRegistry(check_runs=check_runs, sweep=sweep).run_session(987654) == 0


def test_session_registry_serves_providers_in_parallel(elsewhere: RunInThread) -> None:
    together = threading.Barrier(2, timeout=30)

    def meet(seen: ReceivedRequest) -> ScriptedReply:
        together.wait()
        return answer_correctly(seen)

    with ScriptedServer(meet) as first, ScriptedServer(meet) as second:
        models = [make_scripted_model(first, "first"), make_scripted_model(second, "second")]
        launch_run(*models, scenarios=("chat_only",), trials=1)
        sessions = SessionRegistry(check_runs=check_runs, sweep=sweep)
        futures = [elsewhere(sessions.run_session, model.provider_id) for model in models]
        assert [future.result() for future in futures] == [1, 1]


def test_celery_app_publishes_to_configured_broker() -> None:
    assert app.conf.broker_url == settings.CELERY_BROKER_URL
