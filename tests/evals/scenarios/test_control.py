"""Tests of verdicts on the control scenarios."""

import pytest

from tests.evals.manual_trial import ManualTrial
from tests.evals.records import (
    build_calling_turn,
    build_cut_turn,
    build_ended,
    build_failed_turn,
    build_result,
    build_text_turn,
)
from toolbench.engine.events import EndReason, ExchangeError
from toolbench.evals.types import DRAWN

DEAD = ExchangeError("connection_refused", "Nothing accepted the connection.")
REFUSED = ExchangeError("content_refused", "refused by a filter", 403, infrastructure=False)


def test_chat_only_done_passes_with_tools_off() -> None:
    verdict = ManualTrial("chat_only").judge(build_ended(build_text_turn(0, "Done.", tools_sent=False)))
    assert (verdict.outcome, verdict.task_pass, verdict.parity_pass) == ("pass", True, True)


def test_chat_only_any_other_reply_fails() -> None:
    verdict = ManualTrial("chat_only").judge(build_ended(build_text_turn(0, "Sure! Done.", tools_sent=False)))
    assert (verdict.outcome, verdict.parity_pass, verdict.failure_class) == ("fail", False, "wrong_reply")
    assert verdict.sentence == "Turn 1: the final text is 'Sure! Done.'."
    assert verdict.category == "ASSERTION_FAILED"


def test_chat_only_blank_answer_at_length_limit_is_cut_by_length() -> None:
    verdict = ManualTrial("chat_only").judge(build_ended(build_text_turn(0, "", finish="length", tools_sent=False)))
    assert verdict.failure_class == "cut_by_length"


@pytest.mark.parametrize("slug", ["chat_only", "chat_plain"])
@pytest.mark.parametrize(("error", "outcome"), [(DEAD, "infra"), (REFUSED, "fail")])
def test_control_failed_exchange_never_passes(slug: str, error: ExchangeError, outcome: str) -> None:
    verdict = ManualTrial(slug).judge(
        build_ended(build_failed_turn(0, error), end=EndReason.PROVIDER_ERROR, error=error)
    )
    assert verdict.outcome == outcome
    assert verdict.task_pass is not True
    assert verdict.parity_pass is not True


@pytest.mark.parametrize("slug", ["chat_only", "chat_plain"])
def test_control_without_any_turn_fails(slug: str) -> None:
    assert ManualTrial(slug).judge(build_ended()).outcome == "fail"


@pytest.mark.parametrize("seed", range(5))
def test_chat_plain_sum_in_a_sentence_passes(seed: int) -> None:
    trial = ManualTrial("chat_plain", DRAWN, seed)
    verdict = trial.judge(build_ended(build_text_turn(0, f"That makes {trial.values['sum']}, I think.")))
    assert (verdict.outcome, verdict.parity_pass) == ("pass", None)


def test_chat_plain_another_number_fails() -> None:
    trial = ManualTrial("chat_plain")
    verdict = trial.judge(build_ended(build_text_turn(0, f"{trial.values['sum']}0")))
    assert (verdict.outcome, verdict.failure_class) == ("fail", "wrong_reply")


def test_chat_plain_tool_call_is_needless() -> None:
    trial = ManualTrial("chat_plain")
    verdict = trial.judge(
        build_ended(build_calling_turn(0, build_result("clock_now", {})), build_text_turn(1, trial.values["sum"]))
    )
    assert (verdict.outcome, verdict.failure_class) == ("fail", "needless_call")
    assert verdict.sentence == "Turn 1: a tool is called for a question that needs none."


@pytest.mark.parametrize("slug", ["chat_only", "chat_plain"])
def test_control_answer_that_breaks_off_inside_a_call_fails(slug: str) -> None:
    trial = ManualTrial(slug)
    text = "Done." if slug == "chat_only" else trial.values["sum"]
    verdict = trial.judge(build_ended(build_cut_turn(0, text, build_result("clock_now", "{"))))
    assert (verdict.outcome, verdict.failure_class, verdict.parity_pass) == (
        "fail",
        "stream_cut",
        False if slug == "chat_only" else None,
    )
