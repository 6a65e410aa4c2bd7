"""Tests that the table of failure classes is complete and that every end and error has a class."""

import json
from pathlib import Path

import pytest

import toolbench.providers
from toolbench.engine.events import EndReason, ExchangeError
from toolbench.engine.types import Finding
from toolbench.evals.judging import failure_classes

OUTCOMES = Path(toolbench.providers.__path__[0]) / "data" / "outcomes.json"
CATEGORIES_S = {
    "ASSERTION_FAILED", "NO_TOOL_CALLS", "TOOL_ERROR", "NO_TOOL_USE_ENDPOINT", "TIMEOUT", "AUTH", "PAYMENT_REQUIRED",
    "FORBIDDEN", "NOT_FOUND", "CONFLICT", "REQUEST_TOO_LARGE", "UNPROCESSABLE", "RATE_LIMIT", "UPSTREAM_5XX",
    "HTTP_4XX", "EXCEPTION",
}  # fmt: skip
CATEGORIES_H = {"EMPTY_ASSISTANT_TEXT", "CONNECTION_ERROR", "TIMEOUT_ERROR", "DECODE_ERROR", "LANGUAGE_DRIFT"}
UNCOUNTED = {"cancelled", "budget_spent"}


def test_load_classes_have_texts_and_unique_codes() -> None:
    rows = failure_classes.load_classes()
    assert len({row.code for row in rows}) == len(rows)
    assert all(row.sentence.endswith(".") and row.remedy.endswith(".") for row in rows)


def test_load_classes_have_all_categories_of_the_case_study() -> None:
    rows = failure_classes.load_classes()
    assert {row.category for row in rows if row.code not in UNCOUNTED} | {
        row.later_category for row in rows if row.later_category
    } == CATEGORIES_S | CATEGORIES_H


@pytest.mark.parametrize("end", [end for end in EndReason if end is not EndReason.FINAL])
def test_classify_end_of_every_end_but_final_is_a_known_class(end: EndReason) -> None:
    assert failure_classes.lookup_class(failure_classes.classify_end(end)).code


def test_classify_end_of_final_is_empty() -> None:
    assert failure_classes.classify_end(EndReason.FINAL) == ""


def test_classify_exchange_error_agrees_with_table_of_error_codes() -> None:
    rows = json.loads(OUTCOMES.read_text(encoding="utf-8"))["rows"]
    for row in rows:
        found = failure_classes.lookup_class(
            failure_classes.classify_exchange_error(ExchangeError(row["code"], "", None))
        )
        assert found.code != failure_classes.UNNAMED_CLASS, row["code"]
        assert found.infrastructure == row["infrastructure"], row["code"]


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [("new_code", 429, "rate_limited"), ("new_code", 599, "upstream_failed"), ("new_code", None, "provider_failed")],
)
def test_classify_exchange_error_unknown_code_uses_its_status(code: str, status: int | None, expected: str) -> None:
    assert failure_classes.classify_exchange_error(ExchangeError(code, "", status)) == expected


def test_classify_exchange_error_prefers_lack_of_tool_support() -> None:
    assert (
        failure_classes.classify_exchange_error(ExchangeError("not_found", "", 404, tool_support=True))
        == "tools_not_supported"
    )


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["ARGUMENTS_JSON_PARSE_ERROR"], "arguments_not_json"),
        (["ARGUMENTS_TOO_LARGE"], "arguments_too_large"),
        (["ARGUMENT_ERROR"], "arguments_refused"),
        (["TOOL_NOT_ALLOWED"], "unknown_tool"),
        (["WORKSPACE_NOT_FOUND"], "wrong_workspace"),
        (["TOOL_NOT_IMPLEMENTED"], "tool_not_implemented"),
        (["TOOL_OUTPUT_TOO_LARGE"], "tool_output_too_large"),
        (["TOOL_OUTPUT_SERIALIZATION_ERROR"], "tool_output_unserializable"),
        (["INTERNAL_ERROR"], "tool_crashed"),
        (["TOOL_TIMEOUT"], "tool_timeout"),
        (["MY_OWN_CODE", "ARGUMENT_ERROR"], "arguments_refused"),
        (["MY_OWN_CODE"], "tool_error"),
        ([], "tool_error"),
    ],
)
def test_classify_error_codes_of_an_envelope_gives_a_class(codes: list[str], expected: str) -> None:
    assert failure_classes.classify_error_codes(codes) == expected


def test_classify_finding_harmless_has_no_class() -> None:
    assert failure_classes.classify_finding(Finding("prose_around_call", "")) == ""


@pytest.mark.parametrize(
    ("code", "expected", "infrastructure"),
    [("redirect_refused", "redirect_refused", True), ("answer_cut", "stream_broken", False)],
)
def test_classify_exchange_error_redirect_and_cut_answer_have_classes(
    code: str, expected: str, infrastructure: bool
) -> None:
    found = failure_classes.classify_exchange_error(ExchangeError(code, "", None))
    assert (found, failure_classes.lookup_class(found).infrastructure) == (expected, infrastructure)


def test_classify_finding_stream_cut_is_a_model_failure() -> None:
    found = failure_classes.classify_finding(Finding("stream_cut", ""))
    assert (found, failure_classes.lookup_class(found).infrastructure) == ("stream_cut", False)


def test_lookup_class_unknown_code_raises_key_error() -> None:
    with pytest.raises(KeyError):
        failure_classes.lookup_class("nothing_like_it")


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (400, "HTTP_400"),
        (401, "AUTH"),
        (418, "HTTP_418"),
        (429, "RATE_LIMIT"),
        (499, "HTTP_499"),
        (500, "UPSTREAM_5XX"),
        (501, "UPSTREAM_5XX"),
        (599, "UPSTREAM_5XX"),
    ],
)
def test_categorise_status_gives_category_of_the_case_study(status: int, category: str) -> None:
    assert failure_classes.categorise_status(status) == category


@pytest.mark.parametrize(
    ("status", "code"), [(499, "provider_failed"), (500, "upstream_failed"), (501, "upstream_failed")]
)
def test_classify_exchange_error_status_from_500_is_upstream_failed(status: int, code: str) -> None:
    assert failure_classes.classify_exchange_error(ExchangeError("new_code", "", status)) == code


def test_load_classes_engine_findings_are_judged_and_need_no_set_up() -> None:
    found = [row for row in failure_classes.load_classes() if row.findings or row.envelope]
    assert found
    assert all(row.judged and not row.set_up and not row.infrastructure for row in found)
    assert [row.code for row in failure_classes.load_classes() if row.set_up and not row.infrastructure] == []
