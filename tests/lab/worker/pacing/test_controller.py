"""The pace controller in virtual time, against limits that it does not know."""

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest

from benchmarks.adaptive.hidden_limits import HiddenLimits, WindowKind
from benchmarks.adaptive.simulation import START, SimulatedWorkers
from toolbench.lab.worker.pacing.controller import (
    FIRST_SECONDS,
    adjust,
    compute_intervals,
    compute_limit,
    compute_rate,
    compute_share,
)
from toolbench.lab.worker.pacing.state import PaceReport, PaceSettings, PaceState, Rejection

ADAPTIVE = PaceSettings(adaptive=True, max_concurrency=200)
MANY = 10**6
SECONDS = 300
NOW = 1_000_000_000.0
KNOWN = PaceState(updated_at=NOW - 0.5, limit=20.0)


@dataclass(slots=True)
class ShortOverload(HiddenLimits):
    """An endpoint that rejects some requests from a moment on, and none afterwards.

    Attributes:
        begins_at: time of the first rejection.
        rejections: how many requests it rejects.
    """

    begins_at: float = 0.0
    rejections: int = 0

    def _take(self, now: float) -> bool:
        return now < self.begins_at or self.rejected >= self.rejections


def run_workers(limits: HiddenLimits, latency: float, *, queue_after: int = MANY, **fields: Any) -> SimulatedWorkers:
    """Run the simulation; the latency rises evenly with more than `queue_after` requests in flight."""

    def vary(generator: random.Random, in_flight: int) -> float:
        return latency * max(1.0, in_flight / queue_after) * generator.uniform(0.5, 1.5)

    arguments: dict[str, Any] = {"settings": ADAPTIVE, "latency": vary, **fields}
    workers = SimulatedWorkers(limits, **arguments)
    workers.run(SECONDS)
    return workers


def compute_used_percent(workers: SimulatedWorkers, latency: float) -> float:
    per_second = min(workers.limits.in_flight / latency, workers.limits.per_minute / 60)
    return 100 * workers.limits.accepted / (per_second * SECONDS)


@pytest.mark.parametrize("wait_seconds", [None, 1.0])
@pytest.mark.parametrize("latency", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("window", ["sliding", "fixed", "bucket"])
def test_adjust_uses_90_percent_of_hidden_limits(
    window: WindowKind, latency: float, wait_seconds: float | None
) -> None:
    workers = run_workers(HiddenLimits(37, 600, window), latency, wait_seconds=wait_seconds)
    assert compute_used_percent(workers, latency) >= 90
    assert workers.limits.rejected_percent < 2
    assert workers.limits.most_running <= 37


@pytest.mark.parametrize("sessions", [2, 3])
def test_adjust_shares_hidden_limits_between_sessions(sessions: int) -> None:
    workers = run_workers(HiddenLimits(37, 600), 2.0, sessions=sessions)
    assert compute_used_percent(workers, 2.0) >= 90
    assert workers.limits.rejected_percent < 2


def test_adjust_grows_to_the_highest_limit_without_rejections() -> None:
    workers = run_workers(HiddenLimits(MANY, MANY), 1.0)
    assert workers.limits.rejected == 0
    assert workers.limits.most_running == workers.settings.max_concurrency


def test_adjust_lowers_the_limit_as_latency_rises() -> None:
    workers = run_workers(HiddenLimits(MANY, MANY), 1.0, queue_after=20)
    late_limits = [limit for seconds, limit, _ in workers.history if seconds > 60]
    assert min(late_limits) >= 20
    assert max(late_limits) <= 50


def test_adjust_keeps_configured_rate_without_rejections() -> None:
    settings = PaceSettings(max_concurrency=37, requests_per_minute=600)
    workers = run_workers(HiddenLimits(37, 600), 2.0, settings=settings)
    assert compute_used_percent(workers, 2.0) >= 90
    assert workers.limits.rejected == 0


def test_adjust_ends_growth_below_rejected_concurrency() -> None:
    report = PaceReport("a", in_flight=20, peak=20, sent=1, rejections=(Rejection(20, 0.1),))
    state = adjust(KNOWN, report, ADAPTIVE, now=NOW)
    assert (state.limit, state.cap, state.rate) == (19.0, 19.0, None)
    assert state.held_until > NOW


def test_adjust_counts_requests_of_one_overload_once() -> None:
    report = PaceReport("a", in_flight=20, peak=20, sent=2, rejections=(Rejection(20, 0.1), Rejection(19, 0.1)))
    assert adjust(KNOWN, report, ADAPTIVE, now=NOW).limit == 19.0


def test_adjust_learns_the_rate_with_few_in_flight() -> None:
    seconds = tuple((int(NOW) - 50 + place, 10, 0, 20) for place in range(40))
    state = PaceState(updated_at=NOW - 0.5, limit=20.0, seconds=seconds)
    report = PaceReport("a", in_flight=5, peak=6, sent=1, rejections=(Rejection(6, 0.1),))
    state = adjust(state, report, ADAPTIVE, now=NOW)
    assert (state.limit, state.rate) == (20.0, 400.0)
    assert state.held_until == pytest.approx(NOW - 50 + 61, abs=1)
    assert compute_rate(state, ADAPTIVE) == pytest.approx(388)


def test_adjust_pauses_no_longer_than_requests_were_sent() -> None:
    state = PaceState(updated_at=NOW - 0.5, seconds=((int(NOW) - 3, 12, 0, 4),))
    state = adjust(state, PaceReport("a", sent=1, rejections=(Rejection(1, 0.1),)), ADAPTIVE, now=NOW)
    assert (state.rate, state.held_until) == (12.0, NOW + 3)


def test_adjust_forgets_a_tentative_rate_after_more_answers() -> None:
    state = PaceState(updated_at=NOW - 0.5, seconds=((int(NOW) - 9, 20, 0, 4),), rate=20.0, tentative_until=NOW + 51)
    assert adjust(state, PaceReport("a", in_flight=9, sent=9), ADAPTIVE, now=NOW).rate == 20
    disproved = adjust(state, PaceReport("a", in_flight=1, sent=9, answers=8), ADAPTIVE, now=NOW)
    assert (disproved.rate, disproved.tentative_until) == (None, int(NOW) - 9 + FIRST_SECONDS)
    proven = replace(state, tentative_until=NOW)
    assert adjust(proven, PaceReport("a", in_flight=1, sent=9, answers=8), ADAPTIVE, now=NOW).rate == 20


def test_adjust_marks_rate_as_tentative_in_the_first_minute() -> None:
    state = adjust(PaceState(), PaceReport("a", sent=1), ADAPTIVE, now=NOW)
    assert state.tentative_until == NOW + 60
    state = adjust(state, PaceReport("a", sent=1), ADAPTIVE, now=NOW + 30)
    assert state.tentative_until == NOW + 60
    assert adjust(state, PaceReport("a", sent=1), ADAPTIVE, now=NOW + 100).tentative_until == NOW + 160
    known = replace(state, rate=20.0)
    assert adjust(known, PaceReport("a", sent=1), ADAPTIVE, now=NOW + 100).tentative_until == NOW + 60


@pytest.mark.parametrize("rejections", [1, 4])
@pytest.mark.parametrize("after_seconds", [2, 4, 10, 20])
def test_adjust_recovers_from_a_short_overload(after_seconds: float, rejections: int) -> None:
    settings = PaceSettings(adaptive=True, max_concurrency=8)
    overload = ShortOverload(8, MANY, begins_at=START + after_seconds, rejections=rejections)
    workers = run_workers(overload, 0.5, settings=settings)
    assert overload.rejected == rejections
    assert compute_used_percent(workers, 0.5) >= 80


def test_adjust_learns_no_rate_from_few_answers_and_doubles_the_pause() -> None:
    state = PaceState(updated_at=NOW - 0.5, limit=4.0, seconds=((int(NOW) - 1, 4, 0, 2),))
    for moment, pause in ((0, 1), (2, 2), (5, 4)):
        report = PaceReport("a", sent=1, rejections=(Rejection(1, 0.1),))
        state = adjust(state, report, ADAPTIVE, now=NOW + moment)
        assert (state.rate, state.held_until) == (None, NOW + moment + pause)


def test_adjust_pauses_for_the_requested_wait() -> None:
    report = PaceReport("a", sent=1, rejections=(Rejection(20, 0.1, wait_seconds=17.0),))
    for settings in (ADAPTIVE, PaceSettings(requests_per_minute=60)):
        assert adjust(KNOWN, report, settings, now=NOW).held_until == NOW + 17
    exhausted = PaceReport("a", sent=1, answers=1, pause_seconds=9.0)
    assert adjust(KNOWN, exhausted, ADAPTIVE, now=NOW).held_until == NOW + 9


def test_adjust_ignores_rare_answers_503() -> None:
    state = PaceState(updated_at=NOW - 0.5, limit=20.0, seconds=((int(NOW) - 1, 100, 0, 20),))
    rejection = Rejection(20, 0.1, is_limit=False)
    report = PaceReport("a", sent=1, rejections=(rejection,))
    assert adjust(state, report, ADAPTIVE, now=NOW).cap is None
    often = PaceReport("a", sent=9, rejections=(rejection,) * 9)
    assert adjust(state, often, ADAPTIVE, now=NOW).cap == 19.0


def test_adjust_forgets_learned_limits_after_an_hour() -> None:
    old = PaceState(updated_at=NOW - 3601, limit=90.0, rate=12.0, tokens_per_request=300.0)
    state = adjust(old, PaceReport("a"), ADAPTIVE, now=NOW)
    assert (state.limit, state.rate, state.tokens_per_request) == (8.0, None, 300.0)


def test_compute_limit_is_bounded_by_settings_and_rate() -> None:
    assert compute_limit(PaceState(limit=50.0), PaceSettings(adaptive=True, max_concurrency=12)) == 12
    assert compute_limit(PaceState(limit=50.0), PaceSettings(max_concurrency=12)) == 12
    needed = PaceState(limit=50.0, latency=2.0, rate=600.0)
    assert compute_limit(needed, ADAPTIVE) == int(1.3 * 2 * 9.7 + 2)


def test_compute_share_leaves_each_session_an_equal_part() -> None:
    state = PaceState(limit=20.0, sessions={"a": (17, NOW), "b": (3, NOW)})
    assert (compute_share(state, ADAPTIVE, "a"), compute_share(state, ADAPTIVE, "b")) == (17, 10)


def test_compute_intervals_follow_requests_and_tokens() -> None:
    state = PaceState(tokens_per_request=500.0)
    settings = PaceSettings(requests_per_minute=60, tokens_per_minute=3000)
    requests, tokens = compute_intervals(state, settings)
    assert requests == pytest.approx(1 / 0.99)
    assert tokens == pytest.approx(10 / 0.99)
    assert compute_intervals(state, ADAPTIVE) == (0.0, 0.0)
