"""Tests with texts that models have written, well-formed or damaged."""

import random

import pytest

from tests.engine.formats.golden_cases import TOOLS, GoldenCase, parse_in_chunks, read_golden_cases
from toolbench.engine.formats import parse

CASES = read_golden_cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_golden_text_is_parsed_as_expected(case: GoldenCase) -> None:
    parsed = parse(case.text, format=case.format, tools=TOOLS)

    assert [[call.name, call.arguments] for call in parsed.calls] == [call[:2] for call in case.calls]
    assert [call.id for call in parsed.calls] == [
        call[2] if len(call) > 2 else f"call_{index}" for index, call in enumerate(case.calls, 1)
    ]
    assert parsed.text == case.remaining_text
    assert parsed.reasoning == case.reasoning
    assert [finding.code for finding in parsed.findings] == case.findings


@pytest.mark.parametrize("case", CASES, ids=str)
def test_golden_text_in_chunks_parses_like_the_complete_text(case: GoldenCase) -> None:
    complete = parse(case.text, format=case.format, tools=TOOLS)

    assert parse_in_chunks(case.text, case.format, 1) == complete
    assert parse_in_chunks(case.text, case.format, random.Random(case.text)) == complete
