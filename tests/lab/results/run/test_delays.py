"""The causes of delay that the run page names, with their figures."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_step, make_trial
from toolbench.lab.metrics.cells import recompute_stale
from toolbench.lab.models import PacePoint, Run
from toolbench.lab.results.run.page import get_run_page

pytestmark = pytest.mark.django_db


def make_running_run(**fields: object) -> tuple[Run, int]:
    """Make a running run of one provider; return it with the id of the provider."""
    provider = make_provider("Mine", concurrency=8, adaptive=True)
    run = make_run(state=Run.State.RUNNING)
    make_cell(make_config(run, make_model(provider=provider)))
    for concurrency in (3, 1):
        PacePoint.objects.create(
            provider=provider,
            at=timezone.now(),
            seconds=10,
            concurrency=concurrency,
            in_flight=1,
            answers=6,
            rejections=4,
            **fields,
        )
    return run, provider.pk


def test_delays_name_a_lowered_limit_and_its_rejections() -> None:
    run, provider_id = make_running_run()
    (delay,) = get_run_page(run.pk).delays
    assert delay.sentence == (
        "Rate control of Mine allowed 1 to 3 of at most 8 trials at once; "
        "8 of 20 requests, those of other runs included, were rejected."
    )
    assert delay.provider_id == provider_id


def test_delays_name_a_limit_a_minute() -> None:
    run, _ = make_running_run(requests_per_minute=60.0)
    assert "and 60 requests a minute;" in get_run_page(run.pk).delays[0].sentence


def test_delays_name_the_lowest_limit_a_minute() -> None:
    run, _ = make_running_run(requests_per_minute=60.0)
    PacePoint.objects.filter(concurrency=1).update(requests_per_minute=12.0)
    assert "and as few as 12 requests a minute;" in get_run_page(run.pk).delays[0].sentence


def test_delays_exclude_limits_of_other_times() -> None:
    run, _ = make_running_run()
    PacePoint.objects.update(at=timezone.now() - timedelta(hours=1))
    assert get_run_page(run.pk).delays == ()


def test_delays_name_back_off_of_half_a_second_a_trial() -> None:
    run = make_run()
    trial = make_trial(make_cell(make_config(run)), retries=1, requests=2)
    make_step(trial, status=429, ok=False, error_code="rate_limited")
    make_step(trial, status=200, attempt=2, backoff_ms=2500.0)
    recompute_stale()
    (delay,) = get_run_page(run.pk).delays
    assert delay.sentence == "Back-off before retries took 3 s, 2.5 s a trial."
