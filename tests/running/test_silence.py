"""Restart of silent children: when and how often, for any start time and silence."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from toolbench.running.silence import (
    GROWTH_FACTOR,
    MAX_LIMIT_FACTOR,
    MAX_START_SECONDS,
    SETTLED_SECONDS,
    HeartbeatTimer,
)

CHECK_SECONDS = 5.0  # seconds between two checks, as in `make up`
RESTART_PAUSE_SECONDS = 1.0  # seconds from a restart to the next start


def seconds(least: float, most: float) -> st.SearchStrategy[float]:
    """Draw eighths of a second, of which sums are exact."""
    return st.integers(int(least * 8), int(most * 8)).map(lambda eighths: eighths / 8)


limit_seconds = seconds(5, 120)


@dataclass
class SimulatedChild:
    """A simulated child that is restarted when it is overdue, on a clock that only `run` moves.

    Attributes:
        start_seconds: from the start to the first heartbeat.
        gap_seconds: from one heartbeat to the next; None if there is only one.
        restarted_at: the times of its restarts.
    """

    timer: HeartbeatTimer
    start_seconds: float
    gap_seconds: float | None
    now: float = 1000.0
    next_heartbeat: float | None = None
    restarted_at: list[float] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        self.start()
        while self.now < end:
            self.now += CHECK_SECONDS
            while self.next_heartbeat is not None and self.next_heartbeat <= self.now:
                self.timer.record_heartbeat(self.next_heartbeat)
                self.next_heartbeat = None if self.gap_seconds is None else self.next_heartbeat + self.gap_seconds
            if self.timer.is_overdue(self.now):
                self.restarted_at.append(self.now)
                self.timer.extend_limits()
                self.now += RESTART_PAUSE_SECONDS
                self.start()

    def start(self) -> None:
        self.timer.start(self.now)
        self.timer.record_heartbeat(self.now - 1)  # the row of an older process with this number
        self.next_heartbeat = self.now + self.start_seconds


@given(limit_seconds, seconds(0, MAX_START_SECONDS), st.floats(0.1, 1))
def test_heartbeat_timer_never_counts_the_start_as_silence(limit: float, start_seconds: float, share: float) -> None:
    child = SimulatedChild(HeartbeatTimer(limit), start_seconds, gap_seconds=limit * share)
    child.run(4 * MAX_START_SECONDS)
    assert child.restarted_at == []


@given(limit_seconds, seconds(0, MAX_START_SECONDS - CHECK_SECONDS))
def test_heartbeat_timer_restarts_a_silent_child_at_its_limit(limit: float, start_seconds: float) -> None:
    child = SimulatedChild(HeartbeatTimer(limit), start_seconds, gap_seconds=None)
    child.run(MAX_START_SECONDS + 4 * limit)
    first_heartbeat = 1000.0 + start_seconds
    assert first_heartbeat + limit < child.restarted_at[0] <= first_heartbeat + limit + CHECK_SECONDS


@given(limit_seconds)
def test_heartbeat_timer_restarts_a_hanging_start_ever_later(limit: float) -> None:
    child = SimulatedChild(HeartbeatTimer(limit), start_seconds=10**9, gap_seconds=None)
    child.run(MAX_START_SECONDS * 40)
    starts = [1000.0, *(moment + RESTART_PAUSE_SECONDS for moment in child.restarted_at)]
    waits = [end - start for start, end in zip(starts, child.restarted_at, strict=False)]
    expected = [MAX_START_SECONDS * min(GROWTH_FACTOR**place, MAX_LIMIT_FACTOR) for place in range(len(waits))]
    assert len(waits) >= 4
    assert all(least < wait <= least + 2 * CHECK_SECONDS for wait, least in zip(waits, expected, strict=True))


@given(limit_seconds, seconds(0, MAX_START_SECONDS), st.floats(1.01, MAX_LIMIT_FACTOR))
def test_heartbeat_timer_restarts_a_slow_child_at_most_three_times(
    limit: float, start_seconds: float, factor: float
) -> None:
    child = SimulatedChild(HeartbeatTimer(limit), start_seconds, gap_seconds=limit * factor)
    child.run(20 * MAX_START_SECONDS)
    assert len(child.restarted_at) <= 3  # twice, four times, eight times the limit


@given(limit_seconds, st.integers(1, 5))
def test_heartbeat_timer_limit_returns_to_normal_when_settled(limit: float, replacements: int) -> None:
    timer = HeartbeatTimer(limit)
    for _ in range(replacements):
        timer.extend_limits()
    extended_factor = timer.limit_factor
    timer.start(0.0)
    settled_seconds = max(SETTLED_SECONDS, limit * extended_factor)
    heartbeats = [place * limit / 2 for place in range(1, 2 + int(2 * settled_seconds / limit) + 2)]
    factors = []
    for moment in heartbeats:
        timer.record_heartbeat(moment)
        factors.append(timer.limit_factor)
    assert set(factors) == {extended_factor, 1.0}
    assert all(
        (factor == 1.0) is (moment - heartbeats[0] > settled_seconds)
        for factor, moment in zip(factors, heartbeats, strict=True)
    )


@given(limit_seconds, st.floats(1, 10**4))
def test_heartbeat_timer_does_not_count_excused_silence(limit: float, excused_seconds: float) -> None:
    timer = HeartbeatTimer(limit)
    timer.start(0.0)
    timer.record_heartbeat(1.0)
    timer.forgive_silence(1.0 + excused_seconds)
    assert not timer.is_overdue(1.0 + excused_seconds + limit * 0.99)
    assert timer.is_overdue(1.0 + excused_seconds + limit * 1.01)
