"""Reclassifying: causes found again from stored steps equal those found when the trial ended, without a request."""

import json

import pytest
from django.core.management import call_command
from django.utils import timezone

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_stale_cells
from tests.lab.scripted_runs import PATCH_ARGUMENTS, launch_run, make_scripted_model, run_worker_session
from toolbench.lab.models import Cell, Trial
from toolbench.lab.replays import reclassify as reclassification
from toolbench.lab.replays.reclassify import reclassify
from toolbench.lab.results.failures.page import get_failures
from toolbench.lab.results.failures.query import FailuresQuery
from toolbench.lab.traces.cause_columns import CAUSE_COLUMNS
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    text_reply,
    tool_call_reply,
)

pytestmark = pytest.mark.django_db(transaction=True)


def answer_with_invalid_calls(seen: ReceivedRequest) -> ScriptedReply:
    """Call without the required ops, then with ops of a wrong type, then answer; in weather call with a wrong city."""
    body = seen.json()
    answered = sum(message["role"] == "tool" for message in body["messages"])
    tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
    if "get_weather" in tools:
        return tool_call_reply(("get_weather", {"city": "Nowhere"}))
    if not tools or answered > 1:
        return text_reply("Done.")
    return tool_call_reply(("state_patch", {"request_id": "r1"} if not answered else {**PATCH_ARGUMENTS, "ops": "all"}))


def answer_with_overlong_call(seen: ReceivedRequest) -> ScriptedReply:
    """Call with arguments over the limit, as the task requires, then answer without the shorter call."""
    if any(message["role"] == "tool" for message in seen.json()["messages"]):
        return text_reply("I would change it now.")
    return tool_call_reply(("state_patch", {**PATCH_ARGUMENTS, "request_id": "x" * 4000}))


def read_causes(trial: Trial) -> dict[str, object]:
    return {name: getattr(trial, name) for name in CAUSE_COLUMNS}


def test_reclassify_from_stored_steps_restores_causes() -> None:
    with ScriptedServer(answer_with_invalid_calls) as provider:
        model = make_scripted_model(provider)
        run = launch_run(model, scenarios=("happy_path", "chat_only", "weather"), trials=1)
        run_worker_session(model)
        sent = len(provider.seen)
        before = {trial.pk: read_causes(trial) for trial in run.trials.all()}
        run.trials.update(taxonomy=0, cause="", causes=[], cause_signature="", missing_calls=0, wrong_paths=[])
        assert reclassify() == (3, 2)
        assert {trial.pk: read_causes(trial) for trial in run.trials.all()} == before
        assert len(provider.seen) == sent
    happy, weather = (run.trials.get(scenario=slug) for slug in ("happy_path", "weather"))
    assert (happy.cause, happy.failed_calls) == ("schema_type", 2)
    assert happy.cause_signature == "schema_type · happy_path · $.ops · turn 2"
    assert {cause["code"] for cause in happy.causes} == {"schema_missing", "schema_type"}
    assert (happy.missing_calls, happy.type_calls, happy.answered_turns, happy.good_turns) == (1, 1, 3, 1)
    assert (weather.cause, weather.arguments_asked, weather.arguments_right) == ("task_not_done", 1, 0)
    assert weather.wrong_paths == ["$.city"]
    assert run.trials.get(scenario="chat_only").call_expected is None


def test_reclassify_trial_of_older_table_gets_new_cause() -> None:
    with ScriptedServer(answer_with_overlong_call) as provider:
        model = make_scripted_model(provider)
        run = launch_run(model, scenarios=("long_arguments_guard",), trials=1)
        run_worker_session(model)
    trial = run.trials.get()
    before = read_causes(trial)
    old = {"cause": "arguments_too_large", "cause_signature": "arguments_too_large · long_arguments_guard · $ · turn 1"}
    run.trials.update(taxonomy=1, **old)
    page = get_failures(FailuresQuery(runs=(run.pk,)))
    assert (page.version, page.current_version, page.heat_map.rows[0].cause.code) == (1, 3, "arguments_too_large")
    assert reclassify() == (1, 1)
    assert read_causes(run.trials.get()) == before
    assert (before["cause"], before["cause_signature"]) == ("no_call", "no_call · long_arguments_guard · $ · turn 2")
    assert [(cause["code"], cause["mended"]) for cause in trial.causes] == [("arguments_too_large", False)]
    assert get_failures(FailuresQuery(runs=(run.pk,))).version == 3


def test_recompute_counts_errors_recoveries_and_expected_calls() -> None:
    cell = make_cell(make_config(make_run()))
    make_trial(cell, "pass", failed_calls=1, call_expected=True, cached_tokens=5, prompt_version="2")
    make_trial(cell, "fail", failed_calls=2, call_expected=True, calling_answers=0, prompt_version="2")
    make_trial(cell, "pass", call_expected=False, calling_answers=0, first_token_ms=40.0)
    make_trial(cell, "fail", call_expected=False, empty_finals=1, final_answers=2)
    recompute_stale_cells()
    found = Cell.objects.get()
    assert (found.error_trials, found.recovered_trials, found.failed_calls) == (2, 1, 3)
    assert (found.called_rightly, found.call_missed, found.called_needlessly, found.rightly_silent) == (1, 1, 1, 1)
    assert (found.cached_tokens, found.first_token_p50_ms, found.prompt_version) == (5, 40.0, "2")
    assert (found.empty_finals, found.final_answers) == (1, 2)


def test_reclassify_command_skips_trials_of_current_version(capsys: pytest.CaptureFixture[str]) -> None:
    trial = make_trial(make_cell(make_config(make_run())), "fail")
    make_step(trial, bodies={"facts": {"text": "", "tools_sent": True}})
    call_command("reclassify")
    trial.refresh_from_db()
    assert trial.cause == "empty_answer"
    call_command("reclassify")
    call_command("reclassify", again=True)
    output_lines = capsys.readouterr().out.splitlines()
    assert output_lines == [
        "1 trials classified by taxonomy version 3, 1 with another cause",
        "0 trials classified by taxonomy version 3, 0 with another cause",
        "1 trials classified by taxonomy version 3, 0 with another cause",
    ]


def test_reclassify_trial_with_bodies_removed_meanwhile_keeps_cause() -> None:
    trial = make_trial(make_cell(make_config(make_run())), "fail", cause="no_call")
    make_step(trial, bodies={"facts": {"text": "", "tools_sent": True}})
    rows = reclassification._get_rows(Trial.objects.all())
    Trial.objects.update(bodies_removed_at=timezone.now(), bodies_rule="Failed trials after 1 day")
    reclassification._reclassify_rows(rows)
    trial.refresh_from_db()
    assert trial.cause == "no_call"


def test_reclassify_leaves_imported_trials_unchanged() -> None:
    trial = make_trial(make_cell(make_config(make_run(imported=True))), "fail", cause="no_call")
    make_step(trial, bodies={"facts": {"text": "", "tools_sent": True}})
    assert reclassify(again=True) == (0, 0)
    trial.refresh_from_db()
    assert trial.cause == "no_call"


def test_reclassify_unreadable_step_details_still_gives_cause() -> None:
    trial = make_trial(make_cell(make_config(make_run())), "fail")
    make_step(trial, bodies={"facts": {"unreadable": "ValueError"}})
    make_step(trial, kind="tool", bodies={"facts": {}}, ok=False)
    assert reclassify()[0] == 1
    trial.refresh_from_db()
    assert trial.cause == "tool_failed"
    assert json.dumps(trial.causes)
