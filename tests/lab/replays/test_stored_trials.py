import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from tests.lab.simulated_runs import get_simulated_model, run_to_end, serve_simulated_models
from toolbench.evals.bfcl.cases import NotInstalledError
from toolbench.evals.scenarios.state import StateScenario
from toolbench.lab.models import Provider, Run, StepBody, Trial
from toolbench.lab.replays.check import check_replay
from toolbench.lab.replays.stored_trials import replay_trials
from toolbench.lab.replays.what_if_settings import WhatIfSettings
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply, ScriptedServer, error_reply, text_reply

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "sk-secret-0123456789"
FAULTY_MODELS = (
    "arguments-object",
    "bracket-storm",
    "broken-json-once",
    "cut-arguments",
    "drops-connection",
    "equal-ids",
    "history-refused",
    "legacy-function-call",
    "no-tool-route",
    "safety-403",
    "tagged-calls",
    "wrong-types",
)


@pytest.fixture
def personas() -> Iterator[None]:
    with serve_simulated_models():
        yield


def _run_trials(provider: ScriptedServer, **fields: Any) -> Run:
    model = make_scripted_model(provider)
    run = launch_run(model, **fields)
    run_worker_session(model)
    run.refresh_from_db()
    return run


def test_check_replay_of_simulated_models_gives_same_verdicts(personas: None) -> None:
    models = [get_simulated_model(slug) for slug in FAULTY_MODELS]
    scenarios = ("happy_path", "type_error_recovery", "weather", "chat_only")
    runs = [run_to_end(*models, scenarios=scenarios, trials=2)]
    streamed = [get_simulated_model(slug) for slug in ("stream-cut", "stream-error", "stream-no-done")]
    runs.append(run_to_end(*streamed, scenarios=("happy_path",), trials=3, streams=(True,)))
    for wire in (Provider.Wire.ANTHROPIC, Provider.Wire.RESPONSES):
        model = get_simulated_model("perfect", wire)
        runs.append(run_to_end(model, scenarios=("happy_path",), trials=3, instance_kind="drawn"))
    runs.append(
        run_to_end(
            get_simulated_model("perfect"), scenarios=("happy_path",), methods=("text_json", "template"), trials=2
        )
    )

    checks = [check_replay(run.pk) for run in runs]

    assert [check.differing for check in checks] == [()] * len(runs)
    assert [check.unknown for check in checks] == [()] * len(runs)
    assert sum(check.same for check in checks) == sum(run.trial_count for run in runs)


def test_replay_trials_opens_no_connection(scripted: ScriptedServer) -> None:
    run = _run_trials(scripted)
    request_count, reserved = len(scripted.seen), run.requests_reserved
    opened: list[str] = []
    is_watching = [True]

    def hook(event: str, _: tuple[Any, ...]) -> None:
        if is_watching and event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.sendmsg"):
            opened.append(event)

    sys.addaudithook(hook)
    replayed = list(replay_trials(run.trials.values_list("pk", flat=True)))
    is_watching.clear()

    run.refresh_from_db()
    assert [item.columns["outcome"] for item in replayed] == ["pass"] * 3
    assert opened == []
    assert (len(scripted.seen), run.requests_reserved) == (request_count, reserved)


@pytest.mark.parametrize(
    "answer",
    [
        error_reply(500, "out of order"),
        error_reply(429, "slow down"),
        error_reply(401, "bad key"),
        error_reply(400, "context length exceeded"),
        ScriptedReply(200, {}, b"<html>hello</html>"),
        ScriptedReply(200, {}, b'{"odd": true}'),
        ScriptedReply(
            200, {"content-type": "application/json"}, b'{"choices": [', declared=900, ending=ConnectionEnd.CLOSE
        ),
        ScriptedReply(200, ending=ConnectionEnd.RESET, raw=b""),
    ],
)
def test_check_replay_of_stored_endpoint_errors_gives_same_verdict(answer: ScriptedReply) -> None:
    with ScriptedServer(lambda seen: answer) as provider:
        run = _run_trials(provider, trials=1)

    assert check_replay(run.pk).differing == ()
    assert check_replay(run.pk).same == 1


def test_check_replay_of_address_with_query_gives_same_verdict(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted, query="api-version=2026-01-01")
    run = launch_run(model, trials=1)
    run_worker_session(model)

    assert scripted.seen[0].path.endswith("/chat/completions?api-version=2026-01-01")
    assert check_replay(run.pk).same == 1


def test_check_replay_of_trial_over_deadline_gives_same_verdict() -> None:
    with ScriptedServer(lambda seen: ScriptedReply(ending=ConnectionEnd.HANG, declared=10)) as provider:
        run = _run_trials(provider, trials=1, deadline_seconds=0.3)

    assert run.trials.get().end == "DEADLINE_EXCEEDED"
    assert check_replay(run.pk).same == 1


def test_replay_trials_is_unknown_from_truncated_body(scripted: ScriptedServer) -> None:
    trial = _run_trials(scripted, trials=1).trials.get()
    trial.steps.filter(ordinal=3).update(body_cut=True)

    replayed = next(iter(replay_trials([trial.pk], lambda config: config)))

    assert (replayed.unknown_from, replayed.reason) == (3, "the stored answer is truncated")


def test_replay_trials_is_unknown_from_changed_request(scripted: ScriptedServer) -> None:
    trial = _run_trials(scripted, trials=1).trials.get()
    body = StepBody.objects.get(step__trial=trial, step__ordinal=3)
    body.request = bytes(body.request).replace(b"draft", b"dreft")
    body.save()

    replayed = next(iter(replay_trials([trial.pk])))

    assert (replayed.unknown_from, replayed.reason) == (3, "the model would be shown another request (messages, tools)")


def test_replay_trials_of_missing_scenario_version_is_unknown(scripted: ScriptedServer) -> None:
    trial = _run_trials(scripted, trials=1).trials.get()
    Trial.objects.filter(pk=trial.pk).update(scenario_version=99)

    assert next(iter(replay_trials([trial.pk]))).unknown_from == 1


def test_replay_trials_without_bfcl_is_unknown(scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*args: object) -> None:
        raise NotInstalledError

    trial = _run_trials(scripted, trials=1).trials.get()
    monkeypatch.setattr(StateScenario, "judge", judge)

    replayed = next(iter(replay_trials([trial.pk])))

    assert (replayed.unknown_from, replayed.reason) == (1, str(NotInstalledError()))


def test_check_replay_of_unsent_trial_is_not_replayable(scripted: ScriptedServer) -> None:
    run = launch_run(make_scripted_model(scripted), trials=1)
    Trial.objects.update(state="done", outcome="cancelled", end="CANCELLED", failure_class="cancelled")

    assert check_replay(run.pk).not_replayable == 1


def test_check_replay_with_masked_key_gives_same_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with ScriptedServer(lambda seen: text_reply(f"I was told {KEY}.")) as provider:
        model = make_scripted_model(provider)
        Provider.objects.update(key_source="environment", key_env="A_KEY")
        run = launch_run(model, trials=1, overrides={"request_overrides": {"user": KEY}})
        run_worker_session(model)

    assert check_replay(run.pk).same == 1
    assert KEY.encode() not in bytes(StepBody.objects.get().request)


def test_wire_standard_strategy_fails_where_raw_passes(personas: None) -> None:
    strategies = ("raw", "wire_standard", "wire_standard+openai_compatible_reliability")
    run = run_to_end(
        get_simulated_model("arguments-object"), scenarios=("happy_path",), strategies=strategies, trials=1
    )

    outcomes = dict(run.trials.values_list("config__strategy", "outcome"))

    assert outcomes == dict(zip(strategies, ("pass", "fail", "pass"), strict=True))


def test_replay_trials_under_wire_standard_changes_outcome(personas: None) -> None:
    run = run_to_end(
        get_simulated_model("legacy-function-call"), scenarios=("happy_path",), strategies=("baseline",), trials=1
    )
    trials = run.trials.values_list("pk", flat=True)
    settings = WhatIfSettings.from_query({"strategy": ["wire_standard"]})

    (before,), (after,) = list(replay_trials(trials)), list(replay_trials(trials, settings.apply))
    (repaired,) = replay_trials(trials, WhatIfSettings("wire_standard", ("openai_compatible_reliability",)).apply)

    assert settings.ignored == ()
    assert [item.columns["outcome"] for item in (before, after, repaired)] == ["pass", "fail", "pass"]
    assert after.columns["end"] == "NO_TOOL_CALLS"
