"""Search text of a trial: names, question, answer, reason and arguments, bounded."""

import json

import pytest

from toolbench.lab.models import RunConfig, Trial
from toolbench.lab.traces.trial_text import MAX_TEXT_CHARS, build_search_text

QUESTION = "What is the weather in Zürich?"


def _build_trial(**fields: object) -> Trial:
    config = RunConfig(model_name="vendor/model-a", provider_name="Example")
    return Trial(config=config, scenario="weather", sentence="Called with a wrong city.", **fields)


def _encode(messages: object) -> bytes:
    return json.dumps({"messages": messages}).encode()


def test_build_search_text_has_names_question_answer_and_arguments() -> None:
    request = _encode([{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}])
    trial = _build_trial(final_text=b"It is sunny.", cause="wrong_value")
    assert build_search_text(trial, [("", request), ("get_weather", b'{"city": "Bern"}')]).splitlines() == [
        "vendor/model-a Example weather wrong_value get_weather",
        QUESTION,
        "It is sunny.",
        "Called with a wrong city. ",
        'get_weather {"city": "Bern"}',
    ]


@pytest.mark.parametrize(
    "request_body",
    [
        _encode([{"role": "user", "content": [{"type": "text", "text": QUESTION}, {"type": "image"}]}]),
        _encode([{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "Hm."}]),
        json.dumps({"prompt": QUESTION}).encode(),
        json.dumps({"input": QUESTION}).encode(),
        json.dumps({"input": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]}).encode(),
    ],
)
def test_build_search_text_finds_question_in_every_request_form(request_body: bytes) -> None:
    assert QUESTION in build_search_text(_build_trial(), [("", request_body)])


@pytest.mark.parametrize("request_body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, _encode(3), _encode([3, None])])
def test_build_search_text_of_unreadable_request_has_no_question(request_body: bytes) -> None:
    assert build_search_text(_build_trial(), [("", request_body)]).startswith("vendor/model-a")


def test_build_search_text_names_tools_after_long_arguments() -> None:
    steps = [("write_file", b"x" * 400)] * 12 + [("finish_task", b"{}")]
    first_line = build_search_text(_build_trial(), steps).splitlines()[0]
    assert first_line.split()[-2:] == ["write_file", "finish_task"]


def test_build_search_text_without_bodies_has_names_and_reason_only() -> None:
    text = build_search_text(_build_trial(cause="wrong_value"), [("", b""), ("get_weather", b""), ("get_weather", b"")])
    assert text.splitlines() == [
        "vendor/model-a Example weather wrong_value get_weather",
        "Called with a wrong city. ",
    ]


def test_build_search_text_is_bounded_and_fits_its_column() -> None:
    calls = [("save", b'{"text": "' + b"x\x00\xed\xa0\x80" * 500)] * 50
    text = build_search_text(_build_trial(final_text=b"y" * 100_000), calls)
    assert len(text) == MAX_TEXT_CHARS
    assert "\x00" not in text
