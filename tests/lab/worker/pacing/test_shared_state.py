from itertools import pairwise

import pytest

from tests.factories import make_provider
from tests.lab.conftest import RunInThread
from toolbench.lab.models import PacePoint, Provider, ProviderPace
from toolbench.lab.worker.pacing.send_schedule import SessionPace
from toolbench.lab.worker.pacing.shared_state import read_settings, reserve_send_times, share_report
from toolbench.lab.worker.pacing.state import PaceReport, PaceSettings, PaceState, Rejection

pytestmark = pytest.mark.django_db(transaction=True)
ADAPTIVE = PaceSettings(adaptive=True, max_concurrency=100)


def read_state(provider: Provider) -> PaceState:
    return PaceState.from_json(ProviderPace.objects.get(provider=provider).state)


def test_share_report_sums_reports_of_all_sessions(elsewhere: RunInThread) -> None:
    provider = make_provider()
    reports = [PaceReport(f"s{number}", in_flight=2, peak=2, sent=5, answers=5) for number in range(8)]
    for future in [elsewhere(share_report, provider.pk, report, ADAPTIVE) for report in reports]:
        future.result()
    state = read_state(provider)
    assert (state.accepted_per_minute, len(state.sessions), state.point[1]) == (40, 8, 40)
    assert ProviderPace.objects.get(provider=provider).concurrency == int(state.limit)


def test_share_report_pauses_other_sessions() -> None:
    provider = make_provider()
    rejection = Rejection(5, 0.1, wait_seconds=40.0)
    share_report(provider.pk, PaceReport("a", in_flight=4, peak=5, sent=5, rejections=(rejection,)), ADAPTIVE)
    pace = share_report(provider.pk, PaceReport("b"), ADAPTIVE)
    assert pace is not None
    assert 30 < pace.held_seconds <= 40
    assert ProviderPace.objects.get(provider=provider).concurrency == 4


def test_share_report_of_deleted_provider_returns_none() -> None:
    assert share_report(1, PaceReport("a"), ADAPTIVE) is None
    assert reserve_send_times(1, 3, SessionPace(9, request_seconds=1.0)) == ()


def test_share_report_adds_points_of_the_chart() -> None:
    provider = make_provider()
    share_report(provider.pk, PaceReport("a", sent=1, answers=1), ADAPTIVE)
    pace = ProviderPace.objects.get(provider=provider)
    pace.state["point"][0] -= 20
    pace.save()
    share_report(provider.pk, PaceReport("a", sent=2, answers=2), ADAPTIVE)
    point = PacePoint.objects.get(provider=provider)
    assert (point.answers, point.rejections, point.concurrency) == (3, 0, pace.concurrency)
    assert point.seconds >= 20
    assert read_state(provider).point[1] == 0


def test_reserve_send_times_are_spaced_over_all_sessions(elsewhere: RunInThread) -> None:
    provider = make_provider()
    share_report(provider.pk, PaceReport("a"), ADAPTIVE)
    futures = [elsewhere(reserve_send_times, provider.pk, 4, SessionPace(9, request_seconds=50.0)) for _ in range(3)]
    times = sorted(moment for future in futures for moment in future.result())
    assert len(times) == 12
    assert times[-1] == pytest.approx(11 * 50.0, abs=45)
    assert all(later - earlier > 5 for earlier, later in pairwise(times))


def test_share_report_delays_sending_after_unexpected_tokens() -> None:
    provider = make_provider()
    settings = PaceSettings(tokens_per_minute=600)
    share_report(provider.pk, PaceReport("a", sent=1, answers=1, tokens=100), settings)
    pace = share_report(provider.pk, PaceReport("a", sent=1, answers=1, tokens=700), settings)
    assert pace is not None
    (delay,) = reserve_send_times(provider.pk, 1, pace)
    assert delay == pytest.approx((100 + 600) / 10, abs=8)


def test_share_report_forgets_times_of_other_limits() -> None:
    provider = make_provider()
    report = PaceReport("a", sent=50, answers=50, tokens=250_000)
    for _ in range(2):
        share_report(provider.pk, report, PaceSettings(tokens_per_minute=100))
    assert reserve_send_times(provider.pk, 1, SessionPace(9, request_seconds=1.0))[0] < 1  # no limit of tokens any more
    pace = share_report(provider.pk, report, PaceSettings(tokens_per_minute=100_000_000))
    assert pace is not None
    assert reserve_send_times(provider.pk, 1, pace)[0] < 1


def test_read_settings_returns_columns_of_provider() -> None:
    provider = make_provider(concurrency=30, adaptive=True, requests_per_minute=60, tokens_per_minute=9000)
    assert read_settings(provider) == PaceSettings(True, 30, 60, 9000)
    assert read_settings(provider).is_active
    assert not read_settings(Provider()).is_active
