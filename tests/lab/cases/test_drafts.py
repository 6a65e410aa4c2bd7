"""Drafts of test cases: parsing, errors by field and line, and the draft of a saved case."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.cases.test_edit import DRAFT
from toolbench.lab.cases.drafts import MAX_PROBLEMS_SHOWN, CaseDraft, DraftError, build_draft, parse_draft


def parse_errors(**texts: Any) -> dict[str, list[str]]:
    with pytest.raises(DraftError) as caught:
        parse_draft(replace(DRAFT, **texts))
    return caught.value.errors


def test_parse_draft_invalid_json_or_yaml_names_line_of_field() -> None:
    assert parse_errors(tools='[\n {"a": 1,}\n]')["tools"][0].startswith("Line 2, column ")
    assert parse_errors(expect="name: x\n  bad: [")["expect"][0].startswith("Line ")


def test_parse_draft_invalid_value_names_line_in_every_notation() -> None:
    expectation = '{\n "name": "cancel_order",\n "arguments": {\n  "order": {"$any_of": []}}}'
    assert parse_errors(expect=expectation)["expect"][0].startswith("Line 4: ")
    assert parse_errors(expect=f"[\n{expectation}]")["expect"][0].startswith("Line 5: ")
    function = '{\n"name": "f",\n"parameters": {"type": "nonsense"}}'
    assert parse_errors(tools=function, expect='{"no_call": true}')["tools"][0].startswith("Line 3: ")
    assert parse_errors(results="cancel_order:\n  run: rm")["results"][0].startswith("Line 2: ")


def test_parse_draft_refuses_overlong_text_of_each_field() -> None:
    long_text = "x" * 1_000_001
    assert set(parse_errors(message=long_text, system=long_text)) == {"message", "system"}


def test_parse_draft_reports_every_invalid_field() -> None:
    assert set(parse_errors(tools="[", message=" ", results="x: [")) == {"tools", "message", "results"}


def test_build_draft_restores_texts_of_saved_case() -> None:
    title, case = parse_draft(replace(DRAFT, system="Be brief.", results="cancel_order: {fixed: {ok: 1}}"))
    again = build_draft(title, case)
    assert again.message == DRAFT.message
    assert json.loads(again.expect) == json.loads(DRAFT.expect)
    assert parse_draft(again) == (title, case)


def test_parse_draft_limits_number_of_reported_errors() -> None:
    with pytest.raises(DraftError) as refused:
        parse_draft(replace(DRAFT, tools=json.dumps([{"a": 1}] * 5000)))
    assert 0 < sum(map(len, refused.value.errors.values())) <= MAX_PROBLEMS_SHOWN


@pytest.mark.parametrize(
    ("texts", "field"),
    [
        ({"expect": '{"no_call": true, "foo": 1}'}, "expect"),
        ({"expect": '{"no_call": true}', "results": "get_weather: {fixed: 1}"}, "results"),
    ],
)
def test_parse_draft_control_without_tools_names_invalid_field(texts: dict[str, Any], field: str) -> None:
    with pytest.raises(DraftError) as refused:
        parse_draft(CaseDraft(control=True, message="Hi", **texts))
    assert list(refused.value.errors) == [field]


def test_parse_draft_without_tools_names_only_missing_tools() -> None:
    assert list(parse_errors(tools="", results="cancel_order: {fixed: 1}")) == ["tools"]
