"""Whatever a start takes and however long a child is silent: who is replaced, how often, and when."""

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

LOOK = 5.0  # seconds between two looks, as in `make up`
PAUSE = 1.0  # from a replacement to the next start


def seconds(least: float, most: float) -> st.SearchStrategy[float]:
    """Draw eighths of a second, of which sums are exact."""
    return st.integers(int(least * 8), int(most * 8)).map(lambda eighths: eighths / 8)


limits = seconds(5, 120)


@dataclass
class Life:
    """A child that is replaced when it is overdue, on a clock that only `run` moves.

    Attributes:
        start_seconds: from the start to the first sign of life.
        gap_seconds: from one sign to the next; None when there is only one.
        replaced: the moments of its replacements.
    """

    silence: HeartbeatTimer
    start_seconds: float
    gap_seconds: float | None
    now: float = 1000.0
    next_sign: float | None = None
    replaced: list[float] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        self.start()
        while self.now < end:
            self.now += LOOK
            while self.next_sign is not None and self.next_sign <= self.now:
                self.silence.record_heartbeat(self.next_sign)
                self.next_sign = None if self.gap_seconds is None else self.next_sign + self.gap_seconds
            if self.silence.is_overdue(self.now):
                self.replaced.append(self.now)
                self.silence.extend_limits()
                self.now += PAUSE
                self.start()

    def start(self) -> None:
        self.silence.start(self.now)
        self.silence.record_heartbeat(self.now - 1)  # the row of an older process with this number
        self.next_sign = self.now + self.start_seconds


@given(limits, seconds(0, MAX_START_SECONDS), st.floats(0.1, 1))
def test_start_never_counts_as_silence(limit: float, start_seconds: float, share: float) -> None:
    life = Life(HeartbeatTimer(limit), start_seconds, gap_seconds=limit * share)
    life.run(4 * MAX_START_SECONDS)
    assert life.replaced == []


@given(limits, seconds(0, MAX_START_SECONDS - LOOK))
def test_silent_child_is_replaced_at_its_limit(limit: float, start_seconds: float) -> None:
    life = Life(HeartbeatTimer(limit), start_seconds, gap_seconds=None)
    life.run(MAX_START_SECONDS + 4 * limit)
    spoke = 1000.0 + start_seconds
    assert spoke + limit < life.replaced[0] <= spoke + limit + LOOK


@given(limits)
def test_start_that_hangs_is_replaced_ever_later(limit: float) -> None:
    life = Life(HeartbeatTimer(limit), start_seconds=10**9, gap_seconds=None)
    life.run(MAX_START_SECONDS * 40)
    starts = [1000.0, *(moment + PAUSE for moment in life.replaced)]
    waits = [end - start for start, end in zip(starts, life.replaced, strict=False)]
    expected = [MAX_START_SECONDS * min(GROWTH_FACTOR**place, MAX_LIMIT_FACTOR) for place in range(len(waits))]
    assert len(waits) >= 4
    assert all(least < wait <= least + 2 * LOOK for wait, least in zip(waits, expected, strict=True))


@given(limits, seconds(0, MAX_START_SECONDS), st.floats(1.01, MAX_LIMIT_FACTOR))
def test_slow_child_is_replaced_a_few_times_only(limit: float, start_seconds: float, factor: float) -> None:
    life = Life(HeartbeatTimer(limit), start_seconds, gap_seconds=limit * factor)
    life.run(20 * MAX_START_SECONDS)
    assert len(life.replaced) <= 3  # twice, four times, eight times the limit


@given(limits, st.integers(1, 5))
def test_limit_returns_to_normal_when_settled(limit: float, replacements: int) -> None:
    silence = HeartbeatTimer(limit)
    for _ in range(replacements):
        silence.extend_limits()
    grown = silence.limit_factor
    silence.start(0.0)
    settled = max(SETTLED_SECONDS, limit * grown)
    signs = [place * limit / 2 for place in range(1, 2 + int(2 * settled / limit) + 2)]
    growths = []
    for moment in signs:
        silence.record_heartbeat(moment)
        growths.append(silence.limit_factor)
    assert set(growths) == {grown, 1.0}
    assert all((growth == 1.0) is (moment - signs[0] > settled) for growth, moment in zip(growths, signs, strict=True))


@given(limits, st.floats(1, 10**4))
def test_excused_silence_does_not_count(limit: float, away: float) -> None:
    silence = HeartbeatTimer(limit)
    silence.start(0.0)
    silence.record_heartbeat(1.0)
    silence.forgive_silence(1.0 + away)
    assert not silence.is_overdue(1.0 + away + limit * 0.99)
    assert silence.is_overdue(1.0 + away + limit * 1.01)
