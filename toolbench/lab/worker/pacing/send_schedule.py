"""Schedule of one worker session: when the next request may be sent, and what the answers showed.

The schedule uses no clock and no database. The caller passes each time in seconds, always by the same clock.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from toolbench.lab.worker.pacing.state import PaceReport, PaceSettings, Rejection

# Pause after a rejection with status 429 that asks for no wait; by its end, the database has the new limits.
HOLD_SECONDS = 0.5
# After a pause, requests are sent at intervals for a while, so that few are rejected if the provider is still
# overloaded.
SPACING_SECONDS = 0.1  # time between two of these requests
SPACED_SECONDS = 1.0  # time after the end of the pause in which requests are sent at these intervals
MAX_AGE_SECONDS = 1.0  # reserved send times that are longer ago are dropped, since using them would cause a burst


@dataclass(frozen=True, slots=True)
class SessionPace:
    """Limits of a worker session until its next report.

    Attributes:
        in_flight: most requests that the session may have in flight.
        held_seconds: time from now in which it sends nothing.
        request_seconds: seconds between two requests of any sessions, by the limit of requests per minute; 0 for none.
        token_seconds: the same by the limit of tokens per minute.
        pauses_after_rejection: whether, with adaptive concurrency, the session sends nothing for HOLD_SECONDS after a
            rejection with status 429 that asks for no wait.
    """

    in_flight: int
    held_seconds: float = 0.0
    request_seconds: float = 0.0
    token_seconds: float = 0.0
    pauses_after_rejection: bool = True

    @property
    def has_rate(self) -> bool:
        """Whether a send time has to be reserved for each request."""
        return bool(self.request_seconds or self.token_seconds)


@dataclass(frozen=True, slots=True)
class PacedRequest:
    """A request in flight.

    Attributes:
        sent_at: time at which it was sent, in seconds by the caller's clock.
        in_flight: requests of the session in flight when it was sent, itself included.
    """

    sent_at: float
    in_flight: int


@dataclass(frozen=True, slots=True)
class RequestResult:
    """What the answer to a request shows about the load of the provider.

    Attributes:
        model: name of the model; "" for an unreadable answer, whose latency is not counted.
        tokens: tokens of the request and its answer.
        is_rejection: whether the answer has status 429, 503 or 529.
        is_limit: whether a rejection names a limit, that is, has status 429.
        wait_seconds: wait that a rejection asks for, by Retry-After or else `pause_seconds`; None if it asks for none.
        pause_seconds: time until a limit is reset, if the headers say that less of it remains than the requests in
            flight need; else 0.
    """

    model: str
    tokens: int = 0
    is_rejection: bool = False
    is_limit: bool = True
    wait_seconds: float | None = None
    pause_seconds: float = 0.0


@dataclass(slots=True)
class SendSchedule:
    """Requests of one session that are in flight, and the times at which further ones may be sent.

    Attributes:
        session: name of the session.
        settings: settings of the provider.
        pace: limits of the session; None until the database has answered its first report or, after a change of a limit
            per minute, the next one. Nothing is sent while it is None.
        in_flight: requests in flight.
    """

    session: str
    settings: PaceSettings = field(default_factory=PaceSettings)
    pace: SessionPace | None = None
    in_flight: int = 0
    _held_until: float = 0.0
    _next_at: float = 0.0
    _send_times: deque[float] = field(default_factory=deque)
    _peak: int = 0
    _sent: int = 0
    _answers: int = 0
    _answered_in_flight: int = 0
    _latencies: dict[str, tuple[int, float]] = field(default_factory=dict)
    _tokens: int = 0
    _rejections: list[tuple[PacedRequest, RequestResult]] = field(default_factory=list)
    _pause_seconds: float = 0.0
    _has_waited: bool = False

    def set_settings(self, settings: PaceSettings) -> None:
        """Use new settings. After a change of a limit per minute, nothing is sent before the next report.

        Send times that were reserved under the earlier limits are dropped.
        """
        if settings.rate_limits != self.settings.rate_limits:
            self._send_times.clear()
            self.pace = None
        self.settings = settings

    def find_delay(self, now: float) -> float | None:
        """Return the seconds until the next request may be sent.

        Returns:
            The seconds; None if another method has to be called first: the limits or send times are missing, or a
            request in flight has to end.
        """
        if self.pace is None or self.in_flight >= self.pace.in_flight:
            return None
        earliest = max(self._held_until, self._next_at)
        if self.pace.has_rate:
            while self._send_times and self._send_times[0] < now - MAX_AGE_SECONDS:
                self._send_times.popleft()
            if not self._send_times:
                return None
            earliest = max(earliest, self._send_times[0])
        return max(0.0, earliest - now)

    def count_missing_times(self, waiting_count: int) -> int:
        """Return how many send times to reserve for the waiting requests; 0 if some are left or none are needed.

        At most as many are reserved as are used within about MAX_AGE_SECONDS / 2.
        """
        if self.pace is None or not self.pace.has_rate or self._send_times:
            return 0
        interval = max(self.pace.request_seconds, self.pace.token_seconds)
        return max(0, min(waiting_count, self.pace.in_flight - self.in_flight, 1 + int(MAX_AGE_SECONDS / 2 / interval)))

    def add_send_times(self, times: Iterable[float], now: float, settings: PaceSettings) -> None:
        """Add send times that were reserved under these settings.

        The times are ignored if a limit per minute has changed since then.
        """
        if settings.rate_limits != self.settings.rate_limits:
            return
        self._send_times.extend(times)
        self._has_waited = self._has_waited or any(moment > now for moment in self._send_times)

    def start(self, now: float) -> PacedRequest:
        """Count a request that is sent now.

        Call it only if `find_delay` returned 0 or the settings are not active.
        """
        self.in_flight += 1
        self._sent += 1
        self._peak = max(self._peak, self.in_flight)
        if self._send_times:
            self._send_times.popleft()
        if now < self._held_until + SPACED_SECONDS:
            self._next_at = now + SPACING_SECONDS
        return PacedRequest(now, self.in_flight)

    def finish(self, sent: PacedRequest, result: RequestResult | None, now: float) -> bool:
        """Count a request that ended.

        Args:
            sent: the request, as `start` returned it.
            result: what its answer showed; None if it was never sent or got no answer.
            now: the time in seconds.

        Returns:
            Whether the next report is due at once.
        """
        self.in_flight -= 1
        if result is None:
            return False
        if result.is_rejection:
            self._rejections.append((sent, result))
            pauses = self.pace is None or self.pace.pauses_after_rejection
            has_pause = self.settings.adaptive and result.is_limit and pauses
            wait_seconds = result.wait_seconds or (HOLD_SECONDS if has_pause else 0.0)
            self._held_until = max(self._held_until, now + wait_seconds)
            return True
        self._answers += 1
        self._answered_in_flight = max(self._answered_in_flight, sent.in_flight)
        if result.model:
            count, seconds = self._latencies.get(result.model, (0, 0.0))
            self._latencies[result.model] = (count + 1, seconds + now - sent.sent_at)
        self._tokens += result.tokens
        if result.pause_seconds:
            self._pause_seconds = max(self._pause_seconds, result.pause_seconds)
            self._held_until = max(self._held_until, now + result.pause_seconds)
        return result.pause_seconds > 0

    def has_activity(self) -> bool:
        """Return whether a request is in flight, or was answered or rejected since the last report."""
        return bool(self.in_flight or self._answers or self._rejections)

    def take_report(self, now: float) -> PaceReport:
        """Return the report since the last one, and begin the next one."""
        report = PaceReport(
            session=self.session,
            in_flight=self.in_flight,
            peak=self._peak,
            sent=self._sent,
            answers=self._answers,
            answered_in_flight=self._answered_in_flight,
            latencies=self._latencies,
            tokens=self._tokens,
            rejections=tuple(
                Rejection(sent.in_flight, now - sent.sent_at, result.wait_seconds, result.is_limit)
                for sent, result in self._rejections
            ),
            pause_seconds=self._pause_seconds,
            has_waited=self._has_waited,
        )
        self._peak, self._sent, self._answers, self._answered_in_flight = self.in_flight, 0, 0, 0
        self._latencies, self._tokens, self._rejections, self._pause_seconds, self._has_waited = {}, 0, [], 0.0, False
        return report

    def set_pace(self, pace: SessionPace, now: float, settings: PaceSettings) -> None:
        """Use new limits, which the database returned for a report under these settings.

        The limits are ignored if a limit per minute has changed since the report.
        """
        if settings.rate_limits != self.settings.rate_limits:
            return
        if self.pace is not None and not pace.has_rate:
            self._send_times.clear()
        self.pace = pace
        if pace.held_seconds:
            self._held_until = max(self._held_until, now + pace.held_seconds)
