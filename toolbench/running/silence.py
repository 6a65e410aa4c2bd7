"""How long a child process may be silent before it is replaced. All times are seconds of one monotonic clock."""

from dataclasses import dataclass

MAX_START_SECONDS = 600.0  # for a child that has shown no sign of life since its start
SETTLED_SECONDS = 60.0
GROWTH_FACTOR = 2.0
MAX_GROWTH_FACTOR = 8.0


@dataclass(slots=True)
class HeartbeatTimer:
    """Signs of life of one child, through all its restarts.

    A child without a sign of life since its start is starting, so only `start_limit` applies. Every replacement doubles
    both limits; they return to normal once signs have come long enough without a gap of more than `limit`.

    Attributes:
        limit: seconds without a sign of life after which a child is replaced.
        start_limit: seconds that a start may take.
    """

    limit: float
    start_limit: float = MAX_START_SECONDS
    growth: float = 1.0
    has_heartbeat: bool = False
    _started: float = 0.0
    _last_heartbeat_at: float = 0.0
    _steady_since: float = 0.0

    def start(self, now: float) -> None:
        """Reset for a child that has just been started."""
        self._started = self._last_heartbeat_at = now
        self.has_heartbeat = False

    def record_heartbeat(self, moment: float) -> None:
        """Record a sign of life; one from before the start belongs to another process with the same number."""
        if moment < self._started:
            return
        if not self.has_heartbeat or moment - self._last_heartbeat_at > self.limit:
            self._steady_since = moment
        self.has_heartbeat = True
        self._last_heartbeat_at = max(self._last_heartbeat_at, moment)
        if moment - self._steady_since > max(SETTLED_SECONDS, self.limit * self.growth):
            self.growth = 1.0

    def forgive_silence(self, now: float) -> None:
        """Ignore the silence so far, because signs of life could not be seen."""
        self._last_heartbeat_at = max(self._last_heartbeat_at, now)

    def seconds(self, now: float) -> float:
        """Return for how long the child has been silent."""
        return now - self._last_heartbeat_at

    def is_overdue(self, now: float) -> bool:
        """Return whether the child has to be replaced."""
        return self.seconds(now) > (self.limit if self.has_heartbeat else self.start_limit) * self.growth

    def extend_limits(self) -> None:
        """Give the next child more time, after this one is replaced."""
        self.growth = min(self.growth * GROWTH_FACTOR, MAX_GROWTH_FACTOR)
