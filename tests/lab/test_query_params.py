"""Parsing of texts from forms and addresses."""

import pytest

from toolbench.lab.query_params import (
    MAX_ID,
    MAX_RUNS,
    clean_text,
    describe_unreadable,
    normalise_lines,
    parse_run_ids,
    parse_whole_number,
)


def test_clean_text_removes_nul_and_truncates() -> None:
    assert clean_text(" \0a b\0 ") == "a b"
    assert clean_text("  abcdef", 3) == "abc"
    assert clean_text("ab cd", 3) == "ab"


def test_normalise_lines_turns_line_breaks_into_line_feeds() -> None:
    assert normalise_lines("a\r\nb\rc\n\r\nd") == "a\nb\nc\n\nd"


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("17", 17), ("007", 7), (str(MAX_ID), MAX_ID)])
def test_parse_whole_number_reads_plain_digits(text: str, number: int) -> None:
    assert parse_whole_number(text) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "1e3", "٣", "²", "1_0", str(MAX_ID + 1), "9" * 5000])
def test_parse_whole_number_of_other_text_is_none(text: str) -> None:
    assert parse_whole_number(text) is None


def test_parse_whole_number_out_of_bounds_is_none() -> None:
    assert [parse_whole_number(text, minimum=1, maximum=50) for text in ("0", "1", "50", "51")] == [None, 1, 50, None]


def test_parse_run_ids_reports_ids_beyond_the_limit() -> None:
    ids = [str(number) for number in range(MAX_RUNS + 1)]
    assert parse_run_ids([",".join(ids[:MAX_RUNS])]) == (tuple(range(MAX_RUNS)), False)
    assert parse_run_ids(ids) == parse_run_ids([",".join(ids)]) == (tuple(range(MAX_RUNS)), True)


def test_describe_unreadable_names_all_parameters() -> None:
    sentence = "Change since, upto: a value cannot be read, or another value excludes it."
    assert describe_unreadable(["since", "upto"]) == sentence
