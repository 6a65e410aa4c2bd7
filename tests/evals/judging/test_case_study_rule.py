"""Tests of the case study's rule for a pass and of its categories of failures."""

import pytest

from tests.evals.records import build_calling_turn, build_ended, build_failed_turn, build_result, build_text_turn
from toolbench.engine.events import EndReason, ExchangeError
from toolbench.evals.judging import case_study_rule
from toolbench.evals.types import Check


@pytest.mark.parametrize("text", ["Done.", "done", " DONE! ", '"Done."', "`done`", "'Done.'\n"])
def test_is_done_sentence_accepts_done_in_any_case_and_quotes(text: str) -> None:
    assert case_study_rule.is_done_sentence(text)


@pytest.mark.parametrize("text", ["", "Done. Bye.", "I am done", "Done..", "Done?", "Well: Done."])
def test_is_done_sentence_rejects_other_text(text: str) -> None:
    assert not case_study_rule.is_done_sentence(text)


@pytest.mark.parametrize(
    ("status", "message", "code", "category"),
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
def test_categorise_failure_of_exchange_gives_published_category(
    status: int | None, message: str, code: str, category: str
) -> None:
    error = ExchangeError(code, message, status)
    assert (
        case_study_rule.categorise_failure(
            build_ended(build_failed_turn(0, error), end=EndReason.PROVIDER_ERROR, error=error)
        )
        == category
    )


@pytest.mark.parametrize(
    ("end", "category"),
    [
        (EndReason.NO_TOOL_CALLS, "NO_TOOL_CALLS"),
        (EndReason.TOOL_ERROR, "TOOL_ERROR"),
        (EndReason.DEADLINE_EXCEEDED, "TIMEOUT"),
        (EndReason.MAX_TURNS_EXCEEDED, "EXCEPTION"),
    ],
)
def test_categorise_failure_of_end_gives_published_category(end: EndReason, category: str) -> None:
    assert case_study_rule.categorise_failure(build_ended(build_text_turn(0, "hello"), end=end)) == category


def test_categorise_failure_without_any_call_is_no_tool_calls() -> None:
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


def test_build_done_check_quotes_80_characters_of_final_text() -> None:
    assert case_study_rule.build_done_check(build_ended(build_text_turn(0, "Done."))) == Check("says Done.", True)
    text = "x" * 80 + "yz"
    assert case_study_rule.build_done_check(build_ended(build_text_turn(0, text))) == Check(
        "says Done.", False, f"the final text is {'x' * 80!r}"
    )


def test_is_case_study_pass_needs_final_answer_and_every_check() -> None:
    good, bad = Check("a", True), Check("b", False, "no")
    answered, broken = (
        build_ended(build_text_turn(0, "Done.")),
        build_ended(build_text_turn(0, "Done."), end=EndReason.TOOL_ERROR),
    )
    assert case_study_rule.is_case_study_pass(answered, [good])
    assert not case_study_rule.is_case_study_pass(answered, [good, bad])
    assert not case_study_rule.is_case_study_pass(broken, [good])


def test_categorise_failure_ignores_an_earlier_failed_exchange() -> None:
    error = ExchangeError("rate_limited", "", 429)
    assert (
        case_study_rule.categorise_failure(
            build_ended(build_failed_turn(0, error), build_text_turn(1, "x"), error=error, end=EndReason.TOOL_ERROR)
        )
        == "TOOL_ERROR"
    )
