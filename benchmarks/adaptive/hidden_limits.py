"""Hidden limits of an endpoint: requests in flight, and requests per minute in three forms.

Time is an argument, so that a real server and the simulation share this code.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Literal

WindowKind = Literal["sliding", "fixed", "bucket"]
WINDOW_KINDS: tuple[WindowKind, ...] = ("sliding", "fixed", "bucket")


@dataclass(slots=True)
class HiddenLimits:
    """Limits of one endpoint, and counts of its requests.

    Attributes:
        in_flight: limit of requests in flight.
        per_minute: limit of requests per minute.
        window: how a minute is counted: the last 60 seconds, by the clock, or a bucket that is filled evenly.
        random_percent: percentage of requests that it rejects at random, whatever the load.
        running: requests in flight now.
        most_running: largest number of requests in flight so far.
    """

    in_flight: int = 37
    per_minute: int = 600
    window: WindowKind = "sliding"
    random_percent: float = 0.0
    running: int = 0
    accepted: int = 0
    rejected: int = 0
    most_running: int = 0
    random: Random = field(default_factory=lambda: Random(1), repr=False)
    _times: deque[float] = field(default_factory=deque)
    _minute: int = -1
    _used: int = 0
    _level: float = math.inf
    _level_at: float = 0.0

    def enter(self, now: float) -> bool:
        """Return whether a request is accepted; count it."""
        is_unlucky = self.random.uniform(0, 100) < self.random_percent
        if is_unlucky or self.running >= self.in_flight or not self._take(now):
            self.rejected += 1
            return False
        self.running += 1
        self.accepted += 1
        self.most_running = max(self.most_running, self.running)
        return True

    def leave(self) -> None:
        """Note the end of an accepted request."""
        self.running -= 1

    def describe(self) -> dict[str, int]:
        """Return the counts so far."""
        return {"accepted": self.accepted, "rejected": self.rejected, "most_running": self.most_running}

    @property
    def rejected_percent(self) -> float:
        return 100 * self.rejected / max(1, self.accepted + self.rejected)

    def _take(self, now: float) -> bool:
        if self.window == "sliding":
            while self._times and self._times[0] <= now - 60:
                self._times.popleft()
            if len(self._times) >= self.per_minute:
                return False
            self._times.append(now)
            return True
        if self.window == "fixed":
            if int(now // 60) != self._minute:
                self._minute, self._used = int(now // 60), 0
            self._used += 1
            return self._used <= self.per_minute
        refilled = self._level + (now - self._level_at) * self.per_minute / 60
        self._level, self._level_at = min(float(self.per_minute), refilled), now
        if self._level < 1:
            return False
        self._level -= 1
        return True
