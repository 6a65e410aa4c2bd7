"""Parameters that an endpoint refuses, over real HTTP: asked again once, known to the rest of the run."""

import json
from typing import Any

import pytest

from tests.lab.scripted_runs import (
    answer_correctly,
    build_session_options,
    launch_run,
    make_scripted_model,
    run_worker_session,
)
from toolbench.engine.types import JsonObject
from toolbench.lab.models import RefusedParameter, Run, Step, Trial
from toolbench.lab.replays.check import check_replay
from toolbench.lab.replays.stored_trials import replay_trials
from toolbench.lab.replays.what_if_settings import WhatIfSettings
from toolbench.lab.worker.session import run_session
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, error_reply

pytestmark = pytest.mark.django_db(transaction=True)
ERROR_MESSAGE = "Unsupported parameter: '{}' is not supported with this model."


class RefusingModel:
    """A scripted model that answers correctly but refuses requests with one of these parameters."""

    def __init__(self, *names: str, status: int = 400) -> None:
        self.names, self.status = names, status
        self.refused: list[str] = []

    def __call__(self, seen: ReceivedRequest) -> ScriptedReply:
        body = seen.json()
        for name in self.names:
            if name in body:
                self.refused.append(name)
                return error_reply(self.status, ERROR_MESSAGE.format(name), param=name, code="unsupported_parameter")
        return answer_correctly(seen)


def run_to_end(answers: Any, *, concurrency: int = 1, **fields: Any) -> Run:
    with ScriptedServer(answers) as scripted:
        model = make_scripted_model(scripted)
        model.provider.concurrency = concurrency
        model.provider.save()
        given: JsonObject = {"scenarios": ("happy_path",), "strategies": ("baseline",), "trials": 5}
        run = launch_run(model, **(given | fields))
        run_worker_session(model)
    run.refresh_from_db()
    return run


def test_each_parameter_costs_a_run_one_extra_request() -> None:
    refusing = RefusingModel("parallel_tool_calls", "tool_choice", status=422)

    run = run_to_end(refusing)

    trials = list(run.trials.order_by("position"))
    assert [trial.outcome for trial in trials] == ["pass"] * 5
    assert refusing.refused == ["parallel_tool_calls", "tool_choice"]
    assert sorted(trial.requests for trial in trials) == [3, 3, 3, 3, 5]
    assert run.requests_reserved == 17
    assert [trial.retries + trial.output_retries for trial in trials] == [0] * 5


def test_what_is_left_out_and_why_is_written_on_each_trial() -> None:
    run = run_to_end(RefusingModel("tool_choice"))

    first, *rest = run.trials.order_by("started_at")
    message = ERROR_MESSAGE.format("tool_choice")
    assert first.left_out == [{"name": "tool_choice", "why": message, "known": False}]
    assert [trial.left_out for trial in rest] == [[{"name": "tool_choice", "why": message, "known": True}]] * 4
    (kept,) = RefusedParameter.objects.all()
    assert (kept.run, kept.name, kept.why, kept.trial) == (run, "tool_choice", message, first)
    facts = [json.loads(bytes(step.body.facts)) for step in Step.objects.filter(trial=first).select_related("body")]
    changes = [change["path"] for item in facts for change in item.get("request_changes", ())]
    assert changes.count("$.tool_choice") == 3


def test_trials_in_flight_ask_again_each_once() -> None:
    refusing = RefusingModel("tool_choice")

    run = run_to_end(refusing, concurrency=5, trials=20)

    assert {trial.outcome for trial in run.trials.all()} == {"pass"}
    assert 1 <= len(refusing.refused) <= 5
    assert RefusedParameter.objects.count() == 1


def test_next_worker_session_knows_what_was_learnt() -> None:
    refusing = RefusingModel("tool_choice")
    with ScriptedServer(refusing) as scripted:
        model = make_scripted_model(scripted)
        model.provider.concurrency = 1
        model.provider.save()
        run = launch_run(model, scenarios=("happy_path",), strategies=("baseline",), trials=4)
        sessions = 0
        while Trial.objects.filter(run=run, state=Trial.State.QUEUED).exists():
            run_session(model.provider_id, build_session_options(0.01))
            sessions += 1

    assert sessions > 1
    assert len(refusing.refused) == 1


def test_later_run_begins_anew() -> None:
    refusing = RefusingModel("tool_choice")
    with ScriptedServer(refusing) as scripted:
        model = make_scripted_model(scripted)
        for _ in range(2):
            launch_run(model, scenarios=("happy_path",), strategies=("baseline",), trials=1)
            run_worker_session(model)

    assert len(refusing.refused) == 2
    assert RefusedParameter.objects.count() == 2


@pytest.mark.parametrize("strategy", ["raw", "wire_standard"])
def test_bare_strategies_fail_and_learn_nothing(strategy: str) -> None:
    run = run_to_end(RefusingModel("tool_choice"), strategies=("baseline", strategy), trials=2)

    found = set(run.trials.values_list("config__strategy", "outcome"))
    assert found == {("baseline", "pass"), (strategy, "fail")}
    assert all(trial.left_out == [] for trial in run.trials.filter(config__strategy=strategy))


def test_extra_request_is_counted_under_the_cap() -> None:
    refusing = RefusingModel("tool_choice")

    run = run_to_end(refusing, trials=1, request_cap=3)

    assert run.state == Run.State.PAUSED
    assert (run.requests_reserved, len(refusing.refused)) == (3, 1)


def test_parameter_that_did_not_help_is_not_learnt() -> None:
    run = run_to_end(lambda seen: error_reply(400, ERROR_MESSAGE.format("tool_choice"), param="tool_choice"), trials=2)

    assert {trial.end for trial in run.trials.all()} == {"PROVIDER_ERROR"}
    assert [trial.requests for trial in run.trials.all()] == [2, 2]
    assert not RefusedParameter.objects.exists()


def test_trials_with_parameters_left_out_replay_to_the_same_verdicts() -> None:
    run = run_to_end(RefusingModel("parallel_tool_calls", "tool_choice"), trials=3)

    check = check_replay(run.pk)

    assert (check.same, check.differing, check.unknown) == (3, (), ())


def test_what_if_sends_no_refused_parameter_to_a_known_end() -> None:
    run = run_to_end(RefusingModel("parallel_tool_calls"), trials=2)
    trials = run.trials.order_by("started_at").values_list("pk", flat=True)

    first, second = replay_trials(trials, WhatIfSettings("raw").apply)
    _, sending = replay_trials(trials, WhatIfSettings("raw", ("sequential_tool_calls",)).apply)

    assert (first.unknown_from, first.reason) == (1, "the endpoint refused a request that differs from this one")
    assert second.columns["outcome"] == "pass", "raw never sends it"
    assert "the endpoint refuses parameters of this request (parallel_tool_calls)" in sending.reason
