"""Tests of the case study's rule for a pass and of its words for failures."""

import pytest

from tests.evals.records import build_calling_turn, build_ended, build_failed_turn, build_result, build_text_turn
from toolbench.engine.events import EndReason, ExchangeError
from toolbench.evals.judging import case_study_rule
from toolbench.evals.types import Check


@pytest.mark.parametrize("text", ["Done.", "done", " DONE! ", '"Done."', "`done`", "'Done.'\n"])
def test_done_is_recognised(text: str) -> None:
    assert case_study_rule.is_done_sentence(text)


@pytest.mark.parametrize("text", ["", "Done. Bye.", "I am done", "Done..", "Done?", "Well: Done."])
def test_anything_else_is_not_done(text: str) -> None:
    assert not case_study_rule.is_done_sentence(text)


@pytest.mark.parametrize(
    ("status", "message", "code", "word"),
    [
        (None, "", "connection_refused", "CONNECTION_ERROR"),
        (None, "", "read_timeout", "TIMEOUT_ERROR"),
        (200, "", "not_an_answer", "DECODE_ERROR"),
        (404, "No endpoints found that support tool use.", "tools_unsupported", "NO_TOOL_USE_ENDPOINT"),
        (400, "tools are not supported", "tools_unsupported", "HTTP_400"),
        (400, "bad option", "request_rejected", "HTTP_400"),
        (401, "", "authentication", "AUTH"),
        (402, "", "payment_required", "PAYMENT_REQUIRED"),
        (403, "", "content_refused", "FORBIDDEN"),
        (404, "", "not_found", "NOT_FOUND"),
        (408, "", "request_timeout", "TIMEOUT"),
        (409, "", "conflict", "CONFLICT"),
        (413, "", "request_too_large", "REQUEST_TOO_LARGE"),
        (418, "", "request_rejected", "HTTP_418"),
        (422, "", "unprocessable", "UNPROCESSABLE"),
        (429, "", "rate_limited", "RATE_LIMIT"),
        (500, "", "model_format", "UPSTREAM_5XX"),
        (503, "", "unavailable", "UPSTREAM_5XX"),
        (599, "", "server_failed", "UPSTREAM_5XX"),
        (None, "", "never_heard_of", "EXCEPTION"),
    ],
)
def test_a_failed_exchange_has_the_published_word(status: int | None, message: str, code: str, word: str) -> None:
    error = ExchangeError(code, message, status)
    assert (
        case_study_rule.categorise_failure(
            build_ended(build_failed_turn(0, error), end=EndReason.PROVIDER_ERROR, error=error)
        )
        == word
    )


@pytest.mark.parametrize(
    ("end", "word"),
    [
        (EndReason.NO_TOOL_CALLS, "NO_TOOL_CALLS"),
        (EndReason.TOOL_ERROR, "TOOL_ERROR"),
        (EndReason.DEADLINE_EXCEEDED, "TIMEOUT"),
        (EndReason.MAX_TURNS_EXCEEDED, "EXCEPTION"),
    ],
)
def test_an_end_has_the_published_word(end: EndReason, word: str) -> None:
    assert case_study_rule.categorise_failure(build_ended(build_text_turn(0, "hello"), end=end)) == word


def test_a_failed_assertion_without_any_call_is_no_tool_calls() -> None:
    assert case_study_rule.categorise_failure(build_ended(build_text_turn(0, "Done."))) == "NO_TOOL_CALLS"
    assert (
        case_study_rule.categorise_failure(
            build_ended(build_calling_turn(0, build_result("state_get", {})), build_text_turn(1, "Done."))
        )
        == "ASSERTION_FAILED"
    )
    assert (
        case_study_rule.categorise_failure(build_ended(build_text_turn(0, "hello", tools_sent=False)))
        == "ASSERTION_FAILED"
    )


def test_the_final_word_is_quoted_up_to_80_characters() -> None:
    assert case_study_rule.build_done_check(build_ended(build_text_turn(0, "Done."))) == Check("says Done.", True)
    text = "x" * 80 + "yz"
    assert case_study_rule.build_done_check(build_ended(build_text_turn(0, text))) == Check(
        "says Done.", False, f"the final text is {'x' * 80!r}"
    )


def test_a_pass_needs_a_final_answer_and_every_check() -> None:
    good, bad = Check("a", True), Check("b", False, "no")
    answered, broken = (
        build_ended(build_text_turn(0, "Done.")),
        build_ended(build_text_turn(0, "Done."), end=EndReason.TOOL_ERROR),
    )
    assert case_study_rule.is_case_study_pass(answered, [good])
    assert not case_study_rule.is_case_study_pass(answered, [good, bad])
    assert not case_study_rule.is_case_study_pass(broken, [good])


def test_an_exchange_that_failed_on_the_way_does_not_name_the_end() -> None:
    error = ExchangeError("rate_limited", "", 429)
    assert (
        case_study_rule.categorise_failure(
            build_ended(build_failed_turn(0, error), build_text_turn(1, "x"), error=error, end=EndReason.TOOL_ERROR)
        )
        == "TOOL_ERROR"
    )
