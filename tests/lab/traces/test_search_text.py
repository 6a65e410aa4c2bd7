"""Search texts are written after rows were stored, and again after each change."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_cell, make_config, make_gateway_trace, make_run, make_step, make_trial
from toolbench.lab.models import GatewayTrace, GatewayTraceText, Trial, TrialText
from toolbench.lab.traces.search_text import (
    GATEWAY_TRACES,
    TEXT_CPU,
    TEXTS_PER_BATCH,
    get_text_lag,
    update_search_texts,
)


@pytest.mark.django_db
def test_update_search_texts_writes_finished_trials_once_or_when_stale() -> None:
    cell = make_cell(make_config(make_run()))
    trials = [make_trial(cell, "fail", sentence="too late") for _ in range(TEXTS_PER_BATCH + 1)]
    make_trial(cell, "", state=Trial.State.RUNNING)
    make_step(trials[0], kind="tool", ordinal=2, tool_name="get_weather", bodies={"request": b'{"city": "Bern"}'})
    assert [update_search_texts(), update_search_texts()] == [len(trials), 0]
    assert "get_weather" in TrialText.objects.get(trial=trials[0]).text
    Trial.objects.filter(pk=trials[0].pk).update(text_stale=True, sentence="in time")
    assert update_search_texts() == 1
    assert "in time" in TrialText.objects.get(trial=trials[0]).text


@pytest.mark.django_db
def test_update_search_texts_counts_its_cpu_time() -> None:
    make_trial(make_cell(make_config(make_run())))
    before = TEXT_CPU.seconds
    assert update_search_texts() == 1
    assert TEXT_CPU.seconds > before


@pytest.mark.django_db
def test_get_text_lag_is_age_of_oldest_trial_without_text() -> None:
    assert get_text_lag() == 0
    trial = make_trial(make_cell(make_config(make_run())))
    ended_at = timezone.now() - timedelta(minutes=2)
    Trial.objects.filter(pk=trial.pk).update(finished_at=ended_at)
    assert get_text_lag() < 60  # of an imported trial, since its import
    Trial.objects.filter(pk=trial.pk).update(queued_at=ended_at)
    assert 119 < get_text_lag() < 180
    update_search_texts()
    assert get_text_lag() == 0


@pytest.mark.django_db
def test_update_search_texts_writes_gateway_traces_separately() -> None:
    traces = [make_gateway_trace(alias=f"alias {number}") for number in range(TEXTS_PER_BATCH + 1)]
    assert update_search_texts() == 0
    assert update_search_texts(GATEWAY_TRACES, limit=1) == TEXTS_PER_BATCH
    assert list(GatewayTrace.objects.filter(text_stale=True)) == [traces[-1]]
    assert [update_search_texts(GATEWAY_TRACES), update_search_texts(GATEWAY_TRACES)] == [1, 0]
    assert GatewayTraceText.objects.get(trace=traces[-1]).text == f"{traces[-1].alias} chat 200"


@pytest.mark.django_db
def test_get_text_lag_of_gateway_traces_is_age_of_oldest() -> None:
    make_gateway_trace(at=timezone.now() - timedelta(minutes=2))
    assert get_text_lag() == 0
    assert 119 < get_text_lag(GATEWAY_TRACES) < 180


@pytest.mark.django_db
def test_update_search_texts_over_time_limit_starts_no_batch() -> None:
    for _ in range(TEXTS_PER_BATCH + 1):
        make_gateway_trace()
    assert update_search_texts(GATEWAY_TRACES, max_seconds=0) == TEXTS_PER_BATCH
    assert update_search_texts(GATEWAY_TRACES) == 1
