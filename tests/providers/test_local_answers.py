"""Tests of recorded answers of the local model: how the code that reads them classifies them."""

import json

import pytest

from tests.providers.local_answers import list_names, read_answer
from toolbench.engine.methods.constrained import ConstrainedMethod
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.providers.http.error_codes import classify_response

WEATHER = ToolDefinition("get_weather", "The weather in a city.", {"type": "object"})


@pytest.mark.parametrize(
    ("name", "code", "infrastructure"),
    [
        ("format_error", "model_format", False),
        ("bad_history", "request_rejected_as_500", False),
        ("context_overflow", "context_overflow", False),
    ],
)
def test_classify_response_of_local_error_is_not_infrastructure(name: str, code: str, infrastructure: bool) -> None:
    answer = read_answer(name)
    found = classify_response(status=answer.status, headers={}, body=answer.body.encode())
    assert found is not None
    assert (found.code, found.infrastructure, found.retryable) == (code, infrastructure, False)


@pytest.mark.parametrize("name", ["tools_dropped", "call", "cut", "constrained"])
def test_classify_response_of_local_answer_is_none(name: str) -> None:
    answer = read_answer(name)
    assert classify_response(status=answer.status, headers={}, body=answer.body.encode()) is None


def test_recorded_prompt_shows_whether_the_tools_were_dropped() -> None:
    assert '\\"parameters\\"' not in read_answer("template_own").body
    assert '\\"parameters\\"' in read_answer("template_tools").body


def test_recorded_truncated_call_has_arguments_that_are_no_json() -> None:
    choice = json.loads(read_answer("cut").body)["choices"][0]
    arguments = choice["message"]["tool_calls"][0]["function"]["arguments"]
    assert choice["finish_reason"] == "length"
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(arguments)


def test_parse_answer_of_recorded_constrained_answer_is_a_call() -> None:
    message = json.loads(read_answer("constrained").body)["choices"][0]["message"]
    read = ConstrainedMethod("grammar").parse_answer(message, [WEATHER])
    assert [call["function"]["name"] for call in read.calls] == ["get_weather"]
    assert "Oslo" not in read.calls[0]["function"]["arguments"]


def test_recorded_answers_have_no_path_of_a_machine() -> None:
    assert list_names()
    assert not [name for name in list_names() if ".gguf" in read_answer(name).body]
