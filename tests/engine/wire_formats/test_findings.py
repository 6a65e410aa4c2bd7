from typing import Any

import pytest

from tests.engine.scripted_model import build_call
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.findings import list_findings


def list_codes(calls: list[JsonObject], text: str = "", finish: str | None = "tool_calls") -> list[str]:
    return [finding.code for finding in list_findings(calls, text, finish)]


def test_list_findings_of_ordinary_answer_is_empty() -> None:
    assert (
        list_codes([build_call()])
        == list_codes([build_call()], finish="function_call")
        == list_codes([], "Hi.", "stop")
        == []
    )


@pytest.mark.parametrize("finish", ["stop", "", None])
def test_list_findings_reports_calls_with_other_finish_reason(finish: str | None) -> None:
    assert list_codes([build_call()], finish=finish) == ["finish_mismatch"]


def test_list_findings_reports_finish_reason_without_calls() -> None:
    assert list_codes([]) == ["finish_without_calls"]


def test_list_findings_reports_text_beside_calls() -> None:
    assert list_codes([build_call()], "Let me see.") == ["content_beside_calls"]


@pytest.mark.parametrize(
    ("ids", "code"), [(["", "a"], "call_id_missing"), ([None], "call_id_missing"), (["a", "a"], "call_id_repeated")]
)
def test_list_findings_reports_missing_and_repeated_ids(ids: list[Any], code: str) -> None:
    assert list_codes([build_call(call_id=item) for item in ids]) == [code]


@pytest.mark.parametrize("change", [{"type": ""}, {"type": None}, {"type": "custom"}])
def test_list_findings_reports_other_call_type(change: JsonObject) -> None:
    assert list_codes([{**build_call(), **change}]) == ["call_type"]
