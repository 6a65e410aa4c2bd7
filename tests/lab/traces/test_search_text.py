"""What trials can be found by: written after their end, again after each change, and bounded."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from toolbench.lab.models import RunConfig, Trial, TrialText
from toolbench.lab.traces.search_text import (
    MAX_TEXT_CHARS,
    TRIALS_PER_BATCH,
    build_search_text,
    get_text_lag,
    update_search_texts,
)

QUESTION = "What is the weather in Zürich?"


def _build_trial(**fields: object) -> Trial:
    config = RunConfig(model_name="vendor/model-a", provider_name="Example")
    return Trial(config=config, scenario="weather", sentence="Called with a wrong city.", **fields)


def _encode(messages: object) -> bytes:
    return json.dumps({"messages": messages}).encode()


def test_search_text_has_names_question_answer_reason_and_arguments() -> None:
    request = _encode([{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}])
    trial = _build_trial(final_text=b"It is sunny.", cause="wrong_value")
    assert build_search_text(trial, [("", request), ("get_weather", b'{"city": "Bern"}')]).splitlines() == [
        "vendor/model-a Example weather wrong_value",
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
    ],
)
def test_question_is_found_in_every_shape_of_request(request_body: bytes) -> None:
    assert QUESTION in build_search_text(_build_trial(), [("", request_body)])


@pytest.mark.parametrize("request_body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, _encode(3), _encode([3, None])])
def test_unreadable_request_gives_text_without_question(request_body: bytes) -> None:
    assert build_search_text(_build_trial(), [("", request_body)]).startswith("vendor/model-a")


def test_search_text_is_bounded_and_fits_its_column() -> None:
    calls = [("save", b'{"text": "' + b"x\x00\xed\xa0\x80" * 500)] * 50
    text = build_search_text(_build_trial(final_text=b"y" * 100_000), calls)
    assert len(text) == MAX_TEXT_CHARS
    assert "\x00" not in text


@pytest.mark.django_db
def test_update_writes_each_finished_trial_once_and_again_when_stale() -> None:
    cell = make_cell(make_config(make_run()))
    trials = [make_trial(cell, "fail", sentence="too late") for _ in range(TRIALS_PER_BATCH + 1)]
    make_trial(cell, "", state=Trial.State.RUNNING)
    make_step(trials[0], kind="tool", ordinal=2, tool_name="get_weather", bodies={"request": b'{"city": "Bern"}'})
    assert [update_search_texts(), update_search_texts()] == [len(trials), 0]
    assert "get_weather" in TrialText.objects.get(trial=trials[0]).text
    Trial.objects.filter(pk=trials[0].pk).update(text_stale=True, sentence="in time")
    assert update_search_texts() == 1
    assert "in time" in TrialText.objects.get(trial=trials[0]).text


@pytest.mark.django_db
def test_lag_is_age_of_oldest_trial_without_text() -> None:
    assert get_text_lag() == 0
    trial = make_trial(make_cell(make_config(make_run())))
    Trial.objects.filter(pk=trial.pk).update(finished_at=timezone.now() - timedelta(minutes=2))
    assert 119 < get_text_lag() < 180
    update_search_texts()
    assert get_text_lag() == 0
