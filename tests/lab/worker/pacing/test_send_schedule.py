import pytest

from toolbench.lab.worker.pacing.send_schedule import (
    HOLD_SECONDS,
    SPACING_SECONDS,
    RequestResult,
    SendSchedule,
    SessionPace,
)
from toolbench.lab.worker.pacing.state import PaceSettings, Rejection

ADAPTIVE = PaceSettings(adaptive=True)


def make_schedule(pace: SessionPace | None, settings: PaceSettings = ADAPTIVE) -> SendSchedule:
    return SendSchedule("a", settings, pace)


def test_find_delay_waits_for_first_pace_and_free_slot() -> None:
    schedule = make_schedule(None)
    assert schedule.find_delay(100.0) is None
    schedule.set_pace(SessionPace(1), 100.0, ADAPTIVE)
    assert schedule.find_delay(100.0) == 0
    sent = schedule.start(100.0)
    assert schedule.find_delay(100.0) is None
    schedule.finish(sent, RequestResult("m"), 101.0)
    assert schedule.find_delay(101.0) == 0


def test_find_delay_obeys_pause_and_spaces_first_requests() -> None:
    schedule = make_schedule(SessionPace(9))
    schedule.set_pace(SessionPace(9, held_seconds=4.0), 100.0, ADAPTIVE)
    assert schedule.find_delay(101.0) == 3
    schedule.start(104.0)
    assert schedule.find_delay(104.0) == pytest.approx(SPACING_SECONDS)


@pytest.mark.parametrize(
    ("result", "settings", "seconds"),
    [
        (RequestResult("", is_rejection=True), ADAPTIVE, HOLD_SECONDS),
        (RequestResult("", is_rejection=True, wait_seconds=7.0), ADAPTIVE, 7.0),
        (RequestResult("", is_rejection=True, is_limit=False), ADAPTIVE, 0.0),
        (RequestResult("", is_rejection=True), PaceSettings(requests_per_minute=9), 0.0),
        (RequestResult("m", pause_seconds=3.0), ADAPTIVE, 3.0),
    ],
)
def test_finish_rejection_pauses_immediately(result: RequestResult, settings: PaceSettings, seconds: float) -> None:
    schedule = make_schedule(SessionPace(9), settings)
    sent = schedule.start(100.0)
    assert schedule.finish(sent, result, 101.0)
    assert schedule.find_delay(101.0) == seconds


def test_finish_does_not_pause_while_rejections_are_steady() -> None:
    schedule = make_schedule(SessionPace(9, pauses_after_rejection=False))
    schedule.finish(schedule.start(100.0), RequestResult("", is_rejection=True), 101.0)
    assert schedule.find_delay(101.0) == 0
    schedule.finish(schedule.start(101.0), RequestResult("", is_rejection=True, wait_seconds=7.0), 102.0)
    assert schedule.find_delay(102.0) == 7


def test_start_uses_reserved_times_and_drops_old_ones() -> None:
    schedule = make_schedule(SessionPace(9, request_seconds=0.5))
    assert schedule.find_delay(100.0) is None
    assert schedule.count_missing_times(9) == 2
    schedule.add_send_times([90.0, 100.0, 100.5], 100.0, ADAPTIVE)
    assert schedule.count_missing_times(9) == 0
    assert schedule.find_delay(100.0) == 0
    schedule.start(100.0)
    assert schedule.find_delay(100.0) == 0.5


def test_set_settings_drops_times_reserved_under_other_limits() -> None:
    schedule = make_schedule(SessionPace(9, token_seconds=3600.0), PaceSettings(tokens_per_minute=1))
    schedule.add_send_times([3700.0], 100.0, schedule.settings)
    schedule.set_settings(PaceSettings(max_concurrency=5, tokens_per_minute=1))
    assert schedule.find_delay(100.0) == 3600
    schedule.set_settings(PaceSettings(tokens_per_minute=1000))
    assert schedule.find_delay(100.0) is None


def test_schedule_ignores_pace_and_times_of_earlier_limits() -> None:
    earlier = PaceSettings(requests_per_minute=6000)
    schedule = make_schedule(None, earlier)
    schedule.set_settings(PaceSettings(requests_per_minute=60))
    schedule.set_pace(SessionPace(9, request_seconds=0.01), 100.0, earlier)
    assert schedule.pace is None
    schedule.set_pace(SessionPace(9, request_seconds=1.0), 100.0, PaceSettings(requests_per_minute=60, adaptive=True))
    schedule.add_send_times([100.0], 100.0, earlier)
    assert schedule.find_delay(100.0) is None
    schedule.add_send_times([100.5], 100.0, schedule.settings)
    assert schedule.find_delay(100.0) == 0.5


def test_take_report_counts_since_the_previous_report() -> None:
    schedule = make_schedule(SessionPace(9))
    first, second, third = (schedule.start(100.0) for _ in range(3))
    schedule.finish(first, RequestResult("m", tokens=30), 102.0)
    schedule.finish(second, RequestResult("m", is_rejection=True), 103.0)
    report = schedule.take_report(103.0)
    assert (report.in_flight, report.peak, report.sent, report.answers) == (1, 3, 3, 1)
    assert (report.answered_in_flight, report.tokens, report.latencies) == (1, 30, {"m": (1, 2.0)})
    assert report.rejections == (Rejection(2, 3.0),)
    schedule.finish(third, None, 104.0)
    assert not schedule.has_activity()
    assert schedule.take_report(104.0).sent == 0
