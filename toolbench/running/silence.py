"""Measurement of how long a child process has been silent. All times are seconds of one monotonic clock.

A sign of life is a heartbeat or, from a local server, its ready line or the answer to a ping.
"""

from dataclasses import dataclass

MAX_START_SECONDS = 600.0  # for a child that has shown no sign of life since its start
SETTLED_SECONDS = 60.0  # after this time without a problem, limits and pauses return to normal
GROWTH_FACTOR = 2.0
MAX_LIMIT_FACTOR = 8.0


@dataclass(slots=True)
class HeartbeatTimer:
    """Timer of the silence of one child, through all its restarts.

    Until the first sign of life after a start, only `max_start_seconds` applies; afterwards only `max_silent_seconds`.
    Each time the child is killed for its silence, both limits are doubled, up to `MAX_LIMIT_FACTOR` times the normal
    ones. They return to normal when the child has shown signs of life, without a gap of more than `max_silent_seconds`,
    for `SETTLED_SECONDS` or the current limit of silence, whichever is longer.

    Attributes:
        max_silent_seconds: seconds without a sign of life after which the child has to be killed.
        max_start_seconds: seconds that a start may take.
        limit_factor: factor by which both limits are multiplied now.
        has_heartbeat: whether the child has shown a sign of life since its start.
    """

    max_silent_seconds: float
    max_start_seconds: float = MAX_START_SECONDS
    limit_factor: float = 1.0
    has_heartbeat: bool = False
    _started_at: float = 0.0
    _last_heartbeat_at: float = 0.0
    _steady_since: float = 0.0

    def start(self, now: float) -> None:
        """Start to measure the silence of a process that has just been started."""
        self._started_at = self._last_heartbeat_at = now
        self.has_heartbeat = False

    def record_heartbeat(self, heartbeat_at: float) -> None:
        """Record a sign of life.

        A sign from before the start is ignored: an earlier process with the same number has given it.
        """
        if heartbeat_at < self._started_at:
            return
        if not self.has_heartbeat or heartbeat_at - self._last_heartbeat_at > self.max_silent_seconds:
            self._steady_since = heartbeat_at
        self.has_heartbeat = True
        self._last_heartbeat_at = max(self._last_heartbeat_at, heartbeat_at)
        if heartbeat_at - self._steady_since > max(SETTLED_SECONDS, self.max_silent_seconds * self.limit_factor):
            self.limit_factor = 1.0

    def forgive_silence(self, now: float) -> None:
        """Restart the measurement at `now`. Call it if signs of life could not be observed until then."""
        self._last_heartbeat_at = max(self._last_heartbeat_at, now)

    def compute_silent_seconds(self, now: float) -> float:
        """Return the seconds since the latest of the start, the last sign of life and the last forgiven silence."""
        return now - self._last_heartbeat_at

    def is_overdue(self, now: float) -> bool:
        """Return whether the child has been silent for too long."""
        max_seconds = self.max_silent_seconds if self.has_heartbeat else self.max_start_seconds
        return self.compute_silent_seconds(now) > max_seconds * self.limit_factor

    def extend_limits(self) -> None:
        """Double both limits, up to `MAX_LIMIT_FACTOR` times the normal ones. Call it when the child is killed."""
        self.limit_factor = min(self.limit_factor * GROWTH_FACTOR, MAX_LIMIT_FACTOR)
