import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.benches import launched, scripted_model, work
from tests.lab.simulations import persona, simulation, worked
from toolbench.lab.models import Provider, Run, StepBody, Trial
from toolbench.lab.replays.check import check_run
from toolbench.lab.replays.execute import replay
from toolbench.lab.replays.what_if_settings import WhatIf
from toolbench.providers.scripted_server import Answer, Ending, ScriptedProvider, fails, says

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "sk-secret-0123456789"
ODD = (
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
    with simulation():
        yield


def _run_of(provider: ScriptedProvider, **fields: Any) -> Run:
    model = scripted_model(provider)
    run = launched(model, **fields)
    work(model)
    run.refresh_from_db()
    return run


def test_stored_trials_replay_to_the_same_verdicts_and_ends(personas: None) -> None:
    models = [persona(slug) for slug in ODD]
    scenarios = ("happy_path", "type_error_recovery", "weather", "chat_only")
    runs = [worked(*models, scenarios=scenarios, trials=2)]
    streamed = [persona(slug) for slug in ("stream-cut", "stream-error", "stream-no-done")]
    runs.append(worked(*streamed, scenarios=("happy_path",), trials=3, streams=(True,)))
    spoken = persona("perfect", Provider.Wire.ANTHROPIC)
    runs.append(worked(spoken, scenarios=("happy_path",), trials=3, instance_kind="drawn"))
    runs.append(worked(persona("perfect"), scenarios=("happy_path",), methods=("text_json", "template"), trials=2))

    checks = [check_run(run.pk) for run in runs]

    assert [check.differing for check in checks] == [()] * len(runs)
    assert [check.unknown for check in checks] == [()] * len(runs)
    assert sum(check.same for check in checks) == sum(run.trial_count for run in runs)


def test_no_request_leaves_the_machine_while_trials_are_replayed(scripted: ScriptedProvider) -> None:
    run = _run_of(scripted)
    asked, reserved = len(scripted.seen), run.requests_reserved
    opened: list[str] = []
    watching = [True]

    def hook(event: str, _: tuple[Any, ...]) -> None:
        if watching and event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.sendmsg"):
            opened.append(event)

    sys.addaudithook(hook)
    replayed = list(replay(run.trials.values_list("pk", flat=True)))
    watching.clear()

    run.refresh_from_db()
    assert [one.columns["outcome"] for one in replayed] == ["pass"] * 3
    assert opened == []
    assert (len(scripted.seen), run.requests_reserved) == (asked, reserved)


@pytest.mark.parametrize(
    "answer",
    [
        fails(500, "out of order"),
        fails(429, "slow down"),
        fails(401, "bad key"),
        fails(400, "context length exceeded"),
        Answer(200, {}, b"<html>hello</html>"),
        Answer(200, {}, b'{"odd": true}'),
        Answer(200, {"content-type": "application/json"}, b'{"choices": [', declared=900, ending=Ending.CLOSE),
        Answer(200, ending=Ending.RESET, raw=b""),
    ],
)
def test_stored_failures_of_the_world_are_replayed(answer: Answer) -> None:
    with ScriptedProvider(lambda seen: answer) as provider:
        run = _run_of(provider, trials=1)

    assert check_run(run.pk).differing == ()
    assert check_run(run.pk).same == 1


def test_a_deadline_is_replayed_without_waiting_for_it() -> None:
    with ScriptedProvider(lambda seen: Answer(ending=Ending.HANG, declared=10)) as provider:
        run = _run_of(provider, trials=1, deadline_seconds=0.3)

    assert run.trials.get().end == "DEADLINE_EXCEEDED"
    assert check_run(run.pk).same == 1


def test_a_cut_body_is_unknown_from_its_step_under_other_settings(scripted: ScriptedProvider) -> None:
    trial = _run_of(scripted, trials=1).trials.get()
    trial.steps.filter(ordinal=3).update(body_cut=True)

    one = next(iter(replay([trial.pk], lambda config: config)))

    assert (one.unknown_from, one.why) == (3, "the stored answer is cut")


def test_a_request_that_shows_the_model_something_else_is_unknown_from_there(scripted: ScriptedProvider) -> None:
    trial = _run_of(scripted, trials=1).trials.get()
    body = StepBody.objects.get(step__trial=trial, step__ordinal=3)
    body.request = bytes(body.request).replace(b"draft", b"dreft")
    body.save()

    one = next(iter(replay([trial.pk])))

    assert (one.unknown_from, one.why) == (3, "the model would be shown another request (messages, tools)")


def test_a_trial_of_another_version_of_its_scenario_is_unknown(scripted: ScriptedProvider) -> None:
    trial = _run_of(scripted, trials=1).trials.get()
    Trial.objects.filter(pk=trial.pk).update(scenario_version=99)

    assert next(iter(replay([trial.pk]))).unknown_from == 1


def test_a_trial_that_was_never_sent_has_nothing_to_replay(scripted: ScriptedProvider) -> None:
    run = launched(scripted_model(scripted), trials=1)
    Trial.objects.update(state="done", outcome="cancelled", end="CANCELLED", failure_class="cancelled")

    assert check_run(run.pk).never_sent == 1


def test_a_secret_that_was_overwritten_does_not_make_a_request_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    with ScriptedProvider(lambda seen: says(f"I was told {KEY}.")) as provider:
        model = scripted_model(provider)
        Provider.objects.update(key_source="environment", key_env="A_KEY")
        run = launched(model, trials=1, overrides={"request_overrides": {"user": KEY}})
        work(model)

    assert check_run(run.pk).same == 1
    assert KEY.encode() not in bytes(StepBody.objects.get().request)


def test_wire_standard_is_launched_and_told_apart_from_raw(personas: None) -> None:
    strategies = ("raw", "wire_standard", "wire_standard+openai_compatible_reliability")
    run = worked(persona("arguments-object"), scenarios=("happy_path",), strategies=strategies, trials=1)

    outcomes = dict(run.trials.values_list("config__strategy", "outcome"))

    assert outcomes == dict(zip(strategies, ("pass", "fail", "pass"), strict=True))


def test_stored_trial_is_replayed_under_wire_standard(personas: None) -> None:
    run = worked(persona("legacy-function-call"), scenarios=("happy_path",), strategies=("baseline",), trials=1)
    trials = run.trials.values_list("pk", flat=True)
    asked = WhatIf.from_query({"strategy": ["wire_standard"]})

    (before,), (after,) = list(replay(trials)), list(replay(trials, asked.apply))
    (healed,) = replay(trials, WhatIf("wire_standard", ("openai_compatible_reliability",)).apply)

    assert asked.ignored == ()
    assert [one.columns["outcome"] for one in (before, after, healed)] == ["pass", "fail", "pass"]
    assert after.columns["end"] == "NO_TOOL_CALLS"
