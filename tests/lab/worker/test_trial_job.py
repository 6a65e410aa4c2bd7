"""Trial jobs: outcomes of broken answers, log lines, and memory after the end."""

import gc
import io
import json
import logging
from collections.abc import Sequence

import pytest

from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from tests.providers.faulty_server import (
    ANSWER_CUT,
    BREAK_POINTS,
    CONNECTION_ENDS,
    CONNECTION_RESET,
    DISCONNECTED,
    FaultyServer,
)
from tests.providers.test_broken_off import expected_code
from toolbench.lab.models import Model, Provider, Step, Trial
from toolbench.lab.worker.trial_job import TrialJob
from toolbench.log_lines import JsonLineFormatter
from toolbench.providers.driver.step_records import ExchangeStep
from toolbench.providers.http.exchange import Exchange
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply, ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)

INFRA = ("infra", "connection_failed", "connection_failed")
ENDS = {  # outcome, failure class and cause by the exchange's error code
    CONNECTION_RESET: INFRA,
    DISCONNECTED: INFRA,
    "not_http": INFRA,
    "not_an_answer": ("infra", "answer_unreadable", "not_an_answer"),
    ANSWER_CUT: ("fail", "stream_broken", "stream_cut"),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_trial_job_broken_answer_ends_by_error_code(streamed: bool) -> None:
    with FaultyServer() as faulty:
        fields = {"base_url": faulty.base_url, "max_attempts": 1, "concurrency": 16}
        provider = Provider.objects.create(name="faulty", **fields)
        names = [f"{point.name} {ending}" for point in BREAK_POINTS for ending in CONNECTION_ENDS]
        models = [Model.objects.create(provider=provider, name=name, canonical=name) for name in names]
        run = launch_run(*models, scenarios=("happy_path",), trials=1, streams=(streamed,))
        assert run_worker_session(models[0]) == len(models) == faulty.requests
    ends = {
        trial.config.model_name: (trial.outcome, trial.failure_class, trial.cause)
        for trial in run.trials.select_related("config")
    }
    codes = dict(Step.objects.filter(trial__run=run).values_list("trial__config__model_name", "error_code"))
    expected = {
        f"{point.name} {ending}": expected_code(point, ending, streamed=streamed)
        for point in BREAK_POINTS
        for ending in CONNECTION_ENDS
    }
    assert codes == expected
    assert {name: ends[name] for name, code in expected.items() if code} == {
        name: ENDS[code] for name, code in expected.items() if code
    }


def test_trial_job_log_lines_have_trial_run_and_provider_ids(scripted: ScriptedServer) -> None:
    stream, logger = io.StringIO(), logging.getLogger("toolbench.lab.worker.trial_job")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLineFormatter())
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        model = make_scripted_model(scripted)
        launch_run(model, trials=2)
        run_worker_session(model)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    trials = {trial.pk: trial.run_id for trial in Trial.objects.all()}
    assert {line["trial"]: line["run"] for line in lines} == trials
    assert {line["provider"] for line in lines} == {model.provider_id}
    assert lines[0]["message"].startswith("Execution 1 ended after ")


def _list_trial_objects(earlier: Sequence[object] = ()) -> list[object]:
    """Return the jobs, steps and exchanges in memory, without those that another test has kept."""
    known_ids = {id(item) for item in earlier}
    objects = (item for item in gc.get_objects() if type(item) in (TrialJob, ExchangeStep, Exchange))
    return [item for item in objects if id(item) not in known_ids]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_trial_job_after_end_is_freed_without_garbage_collection(streamed: bool, scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    launch_run(model, trials=3, streams=(streamed,))
    gc.collect()
    earlier = _list_trial_objects()
    gc.disable()
    try:
        assert run_worker_session(model) == 3
        assert _list_trial_objects(earlier) == []
    finally:
        gc.enable()


def test_trial_job_truncated_answer_is_freed_without_collection() -> None:
    body = b'{"choices": [' + b" " * 100_000
    cut = ScriptedReply(body=body, declared=len(body) + 100, ending=ConnectionEnd.CLOSE)
    with ScriptedServer(lambda seen: cut) as server:
        model = make_scripted_model(server)
        run = launch_run(model, trials=3)
        gc.collect()
        earlier = _list_trial_objects()
        gc.disable()
        try:
            assert run_worker_session(model) == 3
            remaining = _list_trial_objects(earlier)
        finally:
            gc.enable()
    assert remaining == []
    assert set(Step.objects.filter(trial__run=run).values_list("error_code", flat=True)) == {ANSWER_CUT}
