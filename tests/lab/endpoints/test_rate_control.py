from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_pace, make_provider
from toolbench.lab.endpoints.rate_control import MAX_PER_MINUTE, MAX_POINTS, get_rate_control, list_rate_errors
from toolbench.lab.models import PacePoint
from toolbench.lab.worker.pacing.state import PaceState

pytestmark = pytest.mark.django_db


def test_get_rate_control_of_fixed_provider_is_none() -> None:
    assert get_rate_control(make_provider()) is None


def test_get_rate_control_before_the_first_request_is_empty() -> None:
    page = get_rate_control(make_provider(adaptive=True))
    assert page is not None
    assert (page.points, page.limit, page.requests_per_minute, page.held_until) == ((), None, None, None)
    assert page.rejected_percent == 0


def test_get_rate_control_shows_state_and_newest_points() -> None:
    provider, now = make_provider(adaptive=True, concurrency=50), timezone.now()
    held_until = now + timedelta(minutes=1)
    make_pace(provider, concurrency=37, held_until=held_until, state=PaceState(rate=600.0).to_json())
    PacePoint.objects.bulk_create(
        PacePoint(
            provider=provider,
            at=now - timedelta(seconds=10 * age),
            seconds=10,
            concurrency=37,
            in_flight=36,
            answers=99,
            rejections=1,
        )
        for age in range(MAX_POINTS + 5)
    )
    page = get_rate_control(provider)
    assert page is not None
    assert (page.limit, page.requests_per_minute, page.held_until) == (37, 582, held_until)
    assert len(page.points) == MAX_POINTS
    assert page.points[-1].at == now
    assert (page.rejections, page.rejected_percent) == (MAX_POINTS, 1.0)


@pytest.mark.parametrize(
    ("value", "is_valid"), [(None, True), (1, True), (MAX_PER_MINUTE, True), (0, False), (-1, False)]
)
def test_list_rate_errors_checks_both_limits(value: int | None, is_valid: bool) -> None:
    errors = dict(list_rate_errors(value, value))
    assert [not sentence for sentence in errors.values()] == [is_valid, is_valid]
    assert list(errors) == ["requests_per_minute", "tokens_per_minute"]
