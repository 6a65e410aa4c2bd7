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
    def is_active(self) -> bool:
        """Whether requests have to be paced at all."""
        return bool(self.adaptive or self.requests_per_minute or self.tokens_per_minute)


@dataclass(frozen=True, slots=True)
class Rejection:
    """An answer that says that the provider is overloaded (status 429, 503 or 529).

    Attributes:
        in_flight: requests of the worker session in flight when it was sent, itself included.
        age_seconds: time since it was sent.
        wait_seconds: wait that the answer asks for; None if it asks for none.
        is_limit: whether it names a limit (429); otherwise the provider is unavailable for any reason (503, 529).
    """

    in_flight: int
    age_seconds: float
    wait_seconds: float | None = None
    is_limit: bool = True


@dataclass(frozen=True, slots=True)
class PaceReport:
    """What a worker session saw since its last report.

    Attributes:
        session: name of the session.
        in_flight: requests in flight now.
        peak: most requests in flight.
        sent: requests that were sent.
        answers: answers that are no rejections.
        answered_in_flight: most requests in flight when one of the answered requests was sent.
        latencies: number of readable answers and sum of their seconds, by model.
        tokens: tokens of the answers.
        rejections: in the order in which they were received.
        pause_seconds: time until a limit is reset that the headers of an answer call used up; 0 for none.
        has_waited: whether a request waited for the requests or tokens per minute.
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
        cap: concurrency limit after the last overload; None before the first.
        steady_seconds: time since then in which the limit was used.
        overloaded_at: a rejected request that was sent earlier belongs to an overload that is dealt with already.
        limit_before: limit before that overload.
        rate: requests a minute that the provider accepted when the rate was too high; None before.
        rate_seconds: time since then in which requests waited for the rate.
        rate_limited_at: when that was; 0 for never.
        held_until: no request is sent before.
        hold_seconds: length of the last pause without a request by the provider.
        seconds: for each of the last 60 seconds with a report: the second, the requests that were sent and not
            rejected, the rejected ones, and the most requests in flight when an answered one was sent.
        tentative_until: end of the time in which a new rate is forgotten if more requests are accepted: a minute after
            the first request without a known rate that follows a minute without requests, or when a rate was forgotten.
        answered_peak: most requests in flight with which one was answered.
        low_load_rejections: times of the newest rejections since the load became low.
        is_answered: whether a request that was sent after the last of them was answered.
        steady_share: share of rejections that occur at any load, used until `steady_until`.
        sessions: requests in flight and the time of the last report, by worker session.
        windows: answers, sum of their seconds and most requests in flight, by model, since its last check of latency.
        baselines: latency and requests in flight with which later ones are compared, by model.
        latency: seconds of an answer; 0 before the first.
        tokens_per_request: 0 before the first answer.
        point: since when, answers, rejections and most requests in flight of the next point of the chart.
        updated_at: 0 before the first report.
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
    updated_at: float = 0.0

    @property
    def accepted_per_minute(self) -> int:
        """Requests of the last 60 seconds that were not rejected."""
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
        """Return the requests in flight of the other worker sessions."""
        return sum(in_flight for name, (in_flight, _) in self.sessions.items() if name != session)

    def to_json(self) -> JsonObject:
        """Return the state as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonObject) -> "PaceState":
        """Return the state in a JSON object that `to_json` wrote; keys of other versions are ignored."""
        known = {name: value[name] for name in (item.name for item in fields(cls)) if name in value}
        for name in ("seconds", "point", "low_load_rejections"):
            if name in known:
                known[name] = tuple(tuple(item) if isinstance(item, list) else item for item in known[name])
        for name in ("sessions", "windows", "baselines"):
            known[name] = {key: tuple(item) for key, item in known.get(name, {}).items()}
        return cls(**known)
