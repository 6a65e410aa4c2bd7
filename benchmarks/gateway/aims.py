"""Aims of the gateway's speed, printed beside the measured figures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

DIRECT, STORED, UNSTORED, LITELLM = "direct", "gateway, stored", "gateway, not stored", "LiteLLM"
MAX_ADDED_MS = 1.5  # difference of the medians at C = 1
MAX_GATEWAY_CPU_MS = 1.4  # per request, stored
MAX_POSTGRES_CPU_MS = 0.6  # per request, stored
MIN_STORED_PER_SECOND = 450
MIN_UNSTORED_PER_SECOND = 800
MIN_TIMES_LITELLM = 4
MAX_TEXT_DELAY_MS = 5.0


@dataclass(frozen=True, slots=True)
class Line:
    """Figures of one route at one concurrency.

    Attributes:
        p50: median milliseconds of a request.
        p95: 95th percentile of the milliseconds of a request.
        per_second: requests per second.
        cpu_ms: CPU of the process per request; None if it is not measured.
        postgres_ms: CPU of PostgreSQL per request; None if it is not measured.
    """

    route: str
    concurrency: int
    p50: float
    p95: float
    per_second: float
    cpu_ms: float | None
    postgres_ms: float | None


@dataclass(frozen=True, slots=True)
class Delay:
    """Milliseconds by which texts of a stream arrive later than in a direct one."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of the gateway in MB before, during and after streams are open."""

    streams: int
    before: int
    during: int
    after: int


@dataclass(frozen=True, slots=True)
class _Aim:
    name: str
    limit: float
    figure: float | None
    is_lower_better: bool = True

    def render(self) -> str:
        sign = "≤" if self.is_lower_better else "≥"
        if self.figure is None:
            return f"| {self.name} | {sign} {self.limit:g} | not measured | – |"
        is_met = self.figure <= self.limit if self.is_lower_better else self.figure >= self.limit
        return f"| {self.name} | {sign} {self.limit:g} | {self.figure:.2f} | {'yes' if is_met else 'no'} |"


def print_aims(lines: Sequence[Line], delays: Mapping[str, Delay], memory: Memory) -> None:
    """Print each aim with the worst of its figures, and whether it is met."""
    print("\n| aim | limit | worst figure | met |")
    print("|---|---|---|---|")
    for aim in (*_list_request_aims(lines), *_list_stream_aims(delays)):
        print(aim.render())
    per_stream = 1024 * (memory.during - memory.before) / max(1, memory.streams)
    kept = memory.after - memory.before
    print(f"| memory of each of {memory.streams:,} open streams, kB; MB more after they closed | bounded ", end="")
    print(f"| {per_stream:.0f}; {kept} | – |")


def _list_request_aims(lines: Sequence[Line]) -> Iterator[_Aim]:
    p50_by_route = {line.route: line.p50 for line in lines if line.concurrency == 1}
    stored = [line for line in lines if line.route == STORED]
    unstored = [line for line in lines if line.route == UNSTORED]
    litellm = {line.concurrency: line.per_second for line in lines if line.route == LITELLM}
    ratios = [line.per_second / litellm[line.concurrency] for line in stored if line.concurrency in litellm]
    for route in (STORED, UNSTORED):
        yield _Aim(f"p50 added at C = 1, {route}, ms", MAX_ADDED_MS, p50_by_route[route] - p50_by_route[DIRECT])
    yield _Aim("gateway CPU per request, stored, ms", MAX_GATEWAY_CPU_MS, max(line.cpu_ms or 0 for line in stored))
    yield _Aim(
        "PostgreSQL CPU per request, stored, ms", MAX_POSTGRES_CPU_MS, max(line.postgres_ms or 0 for line in stored)
    )
    for route_lines, minimum in ((stored, MIN_STORED_PER_SECOND), (unstored, MIN_UNSTORED_PER_SECOND)):
        # At C = 1 the throughput is the inverse of the median, whose aim of 1.5 ms and the direct request of 0.2 ms
        # allow 590 a second.
        slowest = min(line.per_second for line in route_lines if line.concurrency > 1)
        yield _Aim(f"requests/s at C > 1, {route_lines[0].route}", minimum, slowest, is_lower_better=False)
    yield _Aim(
        "times the requests/s of LiteLLM, stored", MIN_TIMES_LITELLM, min(ratios, default=None), is_lower_better=False
    )


def _list_stream_aims(delays: Mapping[str, Delay]) -> Iterator[_Aim]:
    for route in (STORED, UNSTORED):
        yield _Aim(f"delay of a text in a stream, {route}, p50, ms", MAX_TEXT_DELAY_MS, delays[route].p50)
        yield _Aim(f"delay of a text in a stream, {route}, p95, ms", MAX_TEXT_DELAY_MS, delays[route].p95)
