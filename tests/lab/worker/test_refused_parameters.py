"""Parameters that an endpoint refuses, over real HTTP: omitted after one refusal, for the rest of the run."""

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
        defaults: JsonObject = {"scenarios": ("happy_path",), "strategies": ("baseline",), "trials": 5}
        run = launch_run(model, **(defaults | fields))
        run_worker_session(model)
    run.refresh_from_db()
    return run


def test_refused_parameter_costs_a_run_one_extra_request() -> None:
    refusing_model = RefusingModel("parallel_tool_calls", "tool_choice", status=422)

    run = run_to_end(refusing_model)

    trials = list(run.trials.order_by("position"))
    assert [trial.outcome for trial in trials] == ["pass"] * 5
    assert refusing_model.refused == ["parallel_tool_calls", "tool_choice"]
    assert sorted(trial.requests for trial in trials) == [3, 3, 3, 3, 5]
    assert run.requests_reserved == 17
    assert [trial.retries + trial.output_retries for trial in trials] == [0] * 5


def test_refused_parameter_and_reason_are_stored_on_each_trial() -> None:
    run = run_to_end(RefusingModel("tool_choice"))

    first, *rest = run.trials.order_by("started_at")
    message = ERROR_MESSAGE.format("tool_choice")
    assert first.left_out == [{"name": "tool_choice", "why": message, "known": False}]
    assert [trial.left_out for trial in rest] == [[{"name": "tool_choice", "why": message, "known": True}]] * 4
    (stored,) = RefusedParameter.objects.all()
    assert (stored.run, stored.name, stored.why, stored.trial) == (run, "tool_choice", message, first)
    facts = [json.loads(bytes(step.body.facts)) for step in Step.objects.filter(trial=first).select_related("body")]
    changes = [change["path"] for item in facts for change in item.get("request_changes", ())]
    assert changes.count("$.tool_choice") == 3


def test_refused_parameter_costs_trials_in_flight_one_request_each() -> None:
    refusing_model = RefusingModel("tool_choice")

    run = run_to_end(refusing_model, concurrency=5, trials=20)

    assert {trial.outcome for trial in run.trials.all()} == {"pass"}
    assert 1 <= len(refusing_model.refused) <= 5
    assert RefusedParameter.objects.count() == 1


def test_refused_parameter_is_known_to_next_worker_session() -> None:
    refusing_model = RefusingModel("tool_choice")
    with ScriptedServer(refusing_model) as scripted:
        model = make_scripted_model(scripted)
        model.provider.concurrency = 1
        model.provider.save()
        run = launch_run(model, scenarios=("happy_path",), strategies=("baseline",), trials=4)
        sessions = 0
        while Trial.objects.filter(run=run, state=Trial.State.QUEUED).exists():
            run_session(model.provider_id, build_session_options(0.01))
            sessions += 1

    assert sessions > 1
    assert len(refusing_model.refused) == 1


def test_refused_parameter_is_sent_again_in_a_later_run() -> None:
    refusing_model = RefusingModel("tool_choice")
    with ScriptedServer(refusing_model) as scripted:
        model = make_scripted_model(scripted)
        for _ in range(2):
            launch_run(model, scenarios=("happy_path",), strategies=("baseline",), trials=1)
            run_worker_session(model)

    assert len(refusing_model.refused) == 2
    assert RefusedParameter.objects.count() == 2


@pytest.mark.parametrize("strategy", ["raw", "wire_standard"])
def test_refused_parameter_with_bare_strategy_fails_trial(strategy: str) -> None:
    run = run_to_end(RefusingModel("tool_choice"), strategies=("baseline", strategy), trials=2)

    found = set(run.trials.values_list("config__strategy", "outcome"))
    assert found == {("baseline", "pass"), (strategy, "fail")}
    assert all(trial.left_out == [] for trial in run.trials.filter(config__strategy=strategy))


def test_refused_parameter_request_counts_toward_request_limit() -> None:
    refusing_model = RefusingModel("tool_choice")

    run = run_to_end(refusing_model, trials=1, request_cap=3)

    assert run.state == Run.State.PAUSED
    assert (run.requests_reserved, len(refusing_model.refused)) == (3, 1)


def test_refused_parameter_is_not_stored_if_omission_does_not_help() -> None:
    run = run_to_end(lambda seen: error_reply(400, ERROR_MESSAGE.format("tool_choice"), param="tool_choice"), trials=2)

    assert {trial.end for trial in run.trials.all()} == {"PROVIDER_ERROR"}
    assert [trial.requests for trial in run.trials.all()] == [2, 2]
    assert not RefusedParameter.objects.exists()


def test_check_replay_with_omitted_parameters_gives_same_verdicts() -> None:
    run = run_to_end(RefusingModel("parallel_tool_calls", "tool_choice"), trials=3)

    check = check_replay(run.pk)

    assert (check.same, check.differing, check.unknown) == (3, (), ())


def test_replay_trials_is_unknown_where_parameter_would_be_refused() -> None:
    run = run_to_end(RefusingModel("parallel_tool_calls"), trials=2)
    trials = run.trials.order_by("started_at").values_list("pk", flat=True)

    first, second = replay_trials(trials, WhatIfSettings("raw").apply)
    _, sending = replay_trials(trials, WhatIfSettings("raw", ("sequential_tool_calls",)).apply)

    assert (first.unknown_from, first.reason) == (1, "the endpoint refused a request that differs from this one")
    assert second.columns["outcome"] == "pass", "raw never sends it"
    assert "the endpoint refuses parameters of this request (parallel_tool_calls)" in sending.reason
