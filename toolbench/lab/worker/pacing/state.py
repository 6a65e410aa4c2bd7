"""Settings, reports and state of the rate control of one provider."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from toolbench.engine.types import JsonObject

FIRST_LIMIT = 8  # concurrency limit of adaptive mode before anything is known


@dataclass(frozen=True, slots=True)
class PaceSettings:
    """Settings of a provider that decide how fast requests are sent.

    Attributes:
        adaptive: whether the concurrency limit follows the answers; otherwise it is `max_concurrency`.
        max_concurrency: highest concurrency limit.
        requests_per_minute: None for no limit.
        tokens_per_minute: tokens of requests and answers; None for no limit.
    """

    adaptive: bool = False
    max_concurrency: int = FIRST_LIMIT
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    @property
    def rate_limits(self) -> tuple[int | None, int | None]:
        """The limits of requests and of tokens per minute."""
        return self.requests_per_minute, self.tokens_per_minute

    @property
    def is_active(self) -> bool:
        """Whether requests have to be paced at all."""
        return bool(self.adaptive or self.requests_per_minute or self.tokens_per_minute)


@dataclass(frozen=True, slots=True)
class Rejection:
    """An answer that says that the provider is overloaded (status 429, 503 or 529).

    Attributes:
        in_flight: requests of the worker session in flight when the rejected request was sent, itself included.
        age_seconds: time since the request was sent.
        wait_seconds: wait that the answer asks for; None if it asks for none.
        is_limit: whether the answer names a limit (429); otherwise the provider is unavailable for any reason (503,
            529).
    """

    in_flight: int
    age_seconds: float
    wait_seconds: float | None = None
    is_limit: bool = True


@dataclass(frozen=True, slots=True)
class PaceReport:
    """Requests and answers of a worker session since its last report.

    Attributes:
        session: name of the session.
        in_flight: requests in flight now.
        peak: most requests in flight since the last report.
        sent: requests that were sent.
        answers: answers that are no rejections.
        answered_in_flight: most requests in flight when one of the answered requests was sent.
        latencies: number of readable answers and sum of their seconds, by model.
        tokens: tokens of the answers and of their requests.
        rejections: in the order in which they were received.
        pause_seconds: if the headers of answers say that less of a limit remains than the requests in flight need, the
            longest time until one of these limits is reset; else 0.
        has_waited: whether a request waited because of the limits of requests or tokens per minute.
    """

    session: str
    in_flight: int = 0
    peak: int = 0
    sent: int = 0
    answers: int = 0
    answered_in_flight: int = 0
    latencies: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    tokens: int = 0
    rejections: tuple[Rejection, ...] = ()
    pause_seconds: float = 0.0
    has_waited: bool = False


@dataclass(frozen=True, slots=True)
class PaceState:
    """State of the rate control of one provider, shared by all workers. Times are seconds since 1970.

    Attributes:
        limit: concurrency limit.
        cap: concurrency limit after the last overload; None before the first, and once rejections are known to be
            steady.
        steady_seconds: time since the last overload in which the limit was used.
        overloaded_at: end of the last overload: a rejection of a request that was sent earlier belongs to it and lowers
            no limit.
        limit_before: concurrency limit before it was last lowered. If it was lowered several times in quick succession,
            the limit before the first time.
        rate: learned limit of requests per minute, before it grows with `rate_seconds`; None if unknown.
        rate_seconds: time since `rate_limited_at` in which requests waited for the rate.
        rate_limited_at: time of the last rejection that was attributed to too many requests per minute; 0 for none.
        held_until: end of the pause in which no request is sent.
        hold_seconds: length of a pause after `rate_limited_at`. If another rejection is attributed to too many requests
            per minute soon after, its pause is twice as long.
        seconds: for each second of the last minute in which requests or answers were reported: the second, the number
            of requests that were sent and not rejected, the number of rejected ones, and the most requests in flight
            when an answered one was sent.
        tentative_until: time until which a learned rate is tentative: the rate is forgotten once more requests per
            minute are accepted. This time is a minute after the first report that follows a minute without requests, if
            no rate is known then. When a rate is forgotten, the time may become earlier (FIRST_SECONDS in
            controller.py).
        answered_peak: most requests in flight so far when an answered one was sent.
        low_load_rejections: times of the rejections that count as steady ones, in order (`note_low_load` in
            steady_rejections.py); empty while the load is high.
        is_answered: whether a request was answered that was sent after the last of `low_load_rejections`.
        steady_share: share of the requests that are rejected at any load; used until `steady_until`.
        sessions: requests in flight and the time of the last report, by worker session.
        windows: by model, since the last check of its latency: number of answers, sum of their seconds, and most
            requests in flight.
        baselines: by model, what later answers are compared with: mean seconds of an answer, and most requests in
            flight.
        latency: moving mean of the seconds of an answer; 0 before the first.
        tokens_per_request: moving mean of the tokens of a request and its answer; 0 before the first answer.
        point: next point of the chart: its start, and its answers, rejections and most requests in flight so far.
        rate_limits: limits of requests and tokens per minute at the last report; None for no limit.
        updated_at: time of the last report; 0 before the first.
    """

    limit: float = float(FIRST_LIMIT)
    cap: float | None = None
    steady_seconds: float = 0.0
    overloaded_at: float = 0.0
    limit_before: float = 0.0
    rate: float | None = None
    rate_seconds: float = 0.0
    rate_limited_at: float = 0.0
    held_until: float = 0.0
    hold_seconds: float = 0.0
    seconds: tuple[tuple[int, int, int, int], ...] = ()
    tentative_until: float = 0.0
    answered_peak: int = 0
    low_load_rejections: tuple[float, ...] = ()
    is_answered: bool = False
    steady_share: float = 0.0
    steady_until: float = 0.0
    sessions: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    windows: Mapping[str, tuple[int, float, int]] = field(default_factory=dict)
    baselines: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    latency: float = 0.0
    tokens_per_request: float = 0.0
    point: tuple[float, int, int, int] = (0.0, 0, 0, 0)
    rate_limits: tuple[int | None, int | None] = (None, None)
    updated_at: float = 0.0

    @property
    def accepted_per_minute(self) -> int:
        """Number of requests of the last 60 seconds that were not rejected."""
        return sum(accepted for _, accepted, _, _ in self.seconds)

    @property
    def rejected_share(self) -> float:
        """Share of rejections among the requests of the last 60 seconds."""
        rejected = sum(rejected for _, _, rejected, _ in self.seconds)
        return rejected / max(1, rejected + self.accepted_per_minute)

    @property
    def proven_in_flight(self) -> int:
        """Most requests in flight with which a request of the last 60 seconds was answered."""
        return max((in_flight for _, _, _, in_flight in self.seconds), default=0)

    def count_others(self, session: str) -> int:
        """Return how many requests the other worker sessions have in flight."""
        return sum(in_flight for name, (in_flight, _) in self.sessions.items() if name != session)

    def to_json(self) -> JsonObject:
        """Return the state as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, state_json: JsonObject) -> "PaceState":
        """Return the state from a JSON object that `to_json` wrote.

        Unknown keys, written by another version of Toolbench, are ignored. A missing key gets its default.
        """
        values = {item.name: state_json[item.name] for item in fields(cls) if item.name in state_json}
        for name in ("seconds", "point", "low_load_rejections", "rate_limits"):
            if name in values:
                values[name] = tuple(tuple(item) if isinstance(item, list) else item for item in values[name])
        for name in ("sessions", "windows", "baselines"):
            values[name] = {key: tuple(item) for key, item in values.get(name, {}).items()}
        return cls(**values)
