import threading

import pytest
from django.conf import settings

from tests.lab.benches import launched, plays_well, scripted_model
from tests.lab.conftest import Elsewhere
from toolbench.celery import app
from toolbench.lab.maintenance import look, sweep
from toolbench.lab.worker.session_registry import Roster
from toolbench.providers.scripted_server import Answer, ScriptedProvider, Seen

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_provider_has_one_shift_per_worker_however_often_it_is_woken(
    scripted: ScriptedProvider, elsewhere: Elsewhere
) -> None:
    model = scripted_model(scripted)
    run = launched(model, trials=8)
    roster = Roster(check_runs=look, sweep=sweep)
    ended = [future.result() for future in [elsewhere(roster.work, model.provider_id) for _ in range(3)]]
    assert sum(ended) == 8
    assert run.trials.filter(execution=1, outcome="pass").count() == 8


def test_a_stopping_worker_begins_no_shift(scripted: ScriptedProvider) -> None:
    model = scripted_model(scripted)
    launched(model)
    roster = Roster(check_runs=look, sweep=sweep)
    roster.stop()
    assert roster.work(model.provider_id) == 0


def test_a_provider_that_is_gone_is_no_error() -> None:
    assert Roster(check_runs=look, sweep=sweep).work(987654) == 0


def test_several_providers_are_served_side_by_side(elsewhere: Elsewhere) -> None:
    together = threading.Barrier(2, timeout=30)

    def meet(seen: Seen) -> Answer:
        together.wait()
        return plays_well(seen)

    with ScriptedProvider(meet) as first, ScriptedProvider(meet) as second:
        models = [scripted_model(first, "first"), scripted_model(second, "second")]
        launched(*models, scenarios=("chat_only",), trials=1)
        roster = Roster(check_runs=look, sweep=sweep)
        futures = [elsewhere(roster.work, model.provider_id) for model in models]
        assert [future.result() for future in futures] == [1, 1]


def test_every_process_publishes_to_our_broker() -> None:
    assert app.conf.broker_url == settings.CELERY_BROKER_URL
