import pytest

from tests.lab.scripted_runs import (
    PATCH_ARGUMENTS,
    launch_run,
    make_scripted_model,
    read_step_facts,
    run_worker_session,
)
from toolbench.engine.events import Request, TurnRecord
from toolbench.engine.types import Turn
from toolbench.lab.models import Step, Trial
from toolbench.lab.traces.trial_columns import build_failure_signature, hash_answers
from toolbench.providers.scripted_server import (
    ScriptedReply,
    ScriptedServer,
    chat_reply,
    error_reply,
    text_reply,
    tool_call_reply,
)


def run_one_trial(*script: ScriptedReply, max_attempts: int = 1, scenario: str = "happy_path") -> Trial:
    with ScriptedServer(script) as provider:
        model = make_scripted_model(provider, max_attempts=max_attempts)
        run = launch_run(model, scenarios=(scenario,), trials=1)
        run_worker_session(model)
    return run.trials.get()


@pytest.mark.django_db(transaction=True)
class TestTrialColumns:
    def test_trial_columns_of_passed_trial(self) -> None:
        trial = run_one_trial(
            tool_call_reply(("state_get", {})), tool_call_reply(("state_patch", PATCH_ARGUMENTS)), text_reply("Done.")
        )
        assert (trial.turns, trial.requests, trial.retries, trial.calls, trial.valid_calls) == (3, 3, 0, 2, 2)
        assert (trial.input_tokens, trial.output_tokens, trial.paths, trial.model_echoed) == (
            30,
            15,
            "tool_use,text",
            "scripted",
        )
        assert trial.first_byte_ms is not None
        assert trial.duration_ms is not None
        assert trial.duration_ms >= trial.model_ms
        assert (trial.seed_sent, len(trial.plan_hash), len(trial.engine_version)) == (False, 64, 12)

    def test_trial_columns_retry_before_answer_keeps_pass(self) -> None:
        trial = run_one_trial(error_reply(503), text_reply("Done."), max_attempts=2, scenario="chat_only")
        assert (trial.requests, trial.retries, trial.output_retries, trial.outcome) == (2, 1, 0, "pass")
        assert trial.backoff_ms > 0

    def test_trial_columns_name_first_bad_step(self) -> None:
        wrong = {"request_id": "r", "ops": [{"op": "set", "path": "/draft/foo", "value": "other"}]}
        trial = run_one_trial(
            tool_call_reply(("state_get", {})), tool_call_reply(("state_patch", wrong)), text_reply("Done.")
        )
        assert (trial.outcome, trial.failure_class) == ("fail", "wrong_state")
        bad = Step.objects.get(trial=trial, ordinal=trial.first_bad_ordinal or 0)
        assert (bad.kind, bad.tool_name) == ("tool", "state_patch")
        assert trial.signature.startswith("wrong_state · happy_path")
        assert trial.verdict["first_bad"]["turn"] == 1

    def test_trial_columns_call_in_text_is_marked_not_executed(self) -> None:
        text = '<tool_call>{"name": "state_get", "arguments": {}}</tool_call>'
        trial = run_one_trial(chat_reply({"content": text}))
        assert (trial.not_executed, trial.outcome, trial.calls) == (True, "fail", 0)

    def test_trial_columns_unreadable_answer_keeps_bytes_and_error(self) -> None:
        trial = run_one_trial(ScriptedReply(body=b"<html>sorry</html>"))
        step = trial.steps.select_related("body").get()
        assert trial.outcome == "infra"
        assert (step.ok, bytes(step.body.response)) == (False, b"<html>sorry</html>")
        assert read_step_facts(step)["error"]["infrastructure"] is True


def test_hash_answers_ignores_ids_of_answers() -> None:
    def make_turn(text: str, call_id: str) -> TurnRecord:
        return TurnRecord(0, Request(0, "", b"", False), Turn({"id": call_id}, text))

    assert (
        hash_answers([make_turn("a", "1")])
        == hash_answers([make_turn("a", "2")])
        != hash_answers([make_turn("b", "1")])
    )
    assert hash_answers([]) == ""
    assert len(hash_answers([make_turn("\ud800\x00", "1")])) == 64


def test_build_failure_signature_is_empty_for_pass_and_truncated() -> None:
    assert build_failure_signature("", "happy_path", "$") == ""
    assert len(build_failure_signature("c", "s", "$" * 900)) == 200
