from typing import Any

import pytest

from tests.engine.scripted_model import build_call
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.findings import list_findings


def codes(calls: list[JsonObject], text: str = "", finish: str | None = "tool_calls") -> list[str]:
    return [finding.code for finding in list_findings(calls, text, finish)]


def test_an_ordinary_answer_gives_no_remark() -> None:
    assert codes([build_call()]) == codes([build_call()], finish="function_call") == codes([], "Hi.", "stop") == []


@pytest.mark.parametrize("finish", ["stop", "", None])
def test_calls_under_another_finish_reason_are_remarked_on(finish: str | None) -> None:
    assert codes([build_call()], finish=finish) == ["finish_mismatch"]


def test_a_finish_reason_without_its_calls_is_remarked_on() -> None:
    assert codes([]) == ["finish_without_calls"]


def test_text_beside_calls_is_remarked_on() -> None:
    assert codes([build_call()], "Let me see.") == ["content_beside_calls"]


@pytest.mark.parametrize(
    ("ids", "code"), [(["", "a"], "call_id_missing"), ([None], "call_id_missing"), (["a", "a"], "call_id_repeated")]
)
def test_ids_that_do_not_tell_calls_apart_are_remarked_on(ids: list[Any], code: str) -> None:
    assert codes([build_call(call_id=item) for item in ids]) == [code]


@pytest.mark.parametrize("change", [{"type": ""}, {"type": None}, {"type": "custom"}])
def test_another_type_is_remarked_on(change: JsonObject) -> None:
    assert codes([{**build_call(), **change}]) == ["call_type"]
