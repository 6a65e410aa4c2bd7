import threading

import pytest
from django.conf import settings

from tests.lab.conftest import RunInThread
from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model
from toolbench.celery import app
from toolbench.lab.maintenance import check_runs, sweep
from toolbench.lab.worker.session_registry import SessionRegistry
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_provider_has_one_shift_per_worker_however_often_it_is_woken(
    scripted: ScriptedServer, elsewhere: RunInThread
) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=8)
    roster = SessionRegistry(check_runs=check_runs, sweep=sweep)
    ended = [future.result() for future in [elsewhere(roster.run_session, model.provider_id) for _ in range(3)]]
    assert sum(ended) == 8
    assert run.trials.filter(execution=1, outcome="pass").count() == 8


def test_a_stopping_worker_begins_no_shift(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    launch_run(model)
    roster = SessionRegistry(check_runs=check_runs, sweep=sweep)
    roster.stop()
    assert roster.run_session(model.provider_id) == 0


def test_a_provider_that_is_gone_is_no_error() -> None:
    assert SessionRegistry(check_runs=check_runs, sweep=sweep).run_session(987654) == 0


def test_several_providers_are_served_side_by_side(elsewhere: RunInThread) -> None:
    together = threading.Barrier(2, timeout=30)

    def meet(seen: ReceivedRequest) -> ScriptedReply:
        together.wait()
        return answer_correctly(seen)

    with ScriptedServer(meet) as first, ScriptedServer(meet) as second:
        models = [make_scripted_model(first, "first"), make_scripted_model(second, "second")]
        launch_run(*models, scenarios=("chat_only",), trials=1)
        roster = SessionRegistry(check_runs=check_runs, sweep=sweep)
        futures = [elsewhere(roster.run_session, model.provider_id) for model in models]
        assert [future.result() for future in futures] == [1, 1]


def test_every_process_publishes_to_our_broker() -> None:
    assert app.conf.broker_url == settings.CELERY_BROKER_URL
