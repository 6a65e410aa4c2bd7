"""The aims of each address, and which of them a measured cost misses."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

MAX_FIRST_MS, MAX_LATER_MS, MAX_SEARCH_MS, MAX_DECISION_MS = 400, 100, 300, 300
MAX_QUERIES, MAX_KILOBYTES = 12, 60
_DECISION_PATHS = ("/decide/", "/compare/", "/api/v1/decide", "/api/v1/compare")
_SEARCH_PATH, _SEARCH_PARAMETER = "/search/", "search="


@dataclass(frozen=True, slots=True)
class PageCost:
    """What one address cost.

    Attributes:
        first_ms: the first call of a process.
        first_cpu_ms: CPU of the process and the database for it.
        p95_ms: of the later calls.
        cpu_ms: CPU of the process and the database, median of the later calls.
        database_ms: the part of the database.
        kilobytes: after gzip.
    """

    address: str
    status: int
    first_ms: float = 0.0
    first_cpu_ms: float = 0.0
    p95_ms: float = 0.0
    cpu_ms: float = 0.0
    database_ms: float = 0.0
    queries: int = 0
    kilobytes: float = 0.0

    @property
    def aims(self) -> Mapping[str, int]:
        """The aim of each figure that has one."""
        later_ms = find_later_aim(self.address)
        times = {"first_ms": MAX_FIRST_MS, "p95_ms": later_ms, "first_cpu_ms": MAX_FIRST_MS, "cpu_ms": later_ms}
        return times | {"queries": MAX_QUERIES, "kilobytes": MAX_KILOBYTES}

    def list_missed(self, *, by_cpu: bool) -> list[str]:
        """Return each aim that is missed, as `figure 142 > 100`.

        Args:
            by_cpu: whether to judge CPU time, which other work on the machine does not lengthen, or the time that
                passes.
        """
        if self.status >= 400:
            return [f"status {self.status}"]
        ignored = {"first_ms", "p95_ms"} if by_cpu else {"first_cpu_ms", "cpu_ms"}
        figures = asdict(self)
        return [
            f"{name} {figures[name]:.0f} > {aim}"
            for name, aim in self.aims.items()
            if name not in ignored and figures[name] > aim
        ]

    def __str__(self) -> str:
        times = (self.first_ms, self.first_cpu_ms, self.p95_ms, self.cpu_ms, self.database_ms)
        cells = (f"`{self.address}`", self.status, *map(round, times), self.queries, round(self.kilobytes))
        return f"| {' | '.join(map(str, cells))} |"


def find_later_aim(address: str) -> int:
    """Return the milliseconds in which later calls of an address shall be answered."""
    if address.startswith(_DECISION_PATHS):
        return MAX_DECISION_MS
    return MAX_SEARCH_MS if address.startswith(_SEARCH_PATH) or _SEARCH_PARAMETER in address else MAX_LATER_MS


def render_missed(costs: list[PageCost], *, by_cpu: bool) -> str:
    """Return a line for each address that misses an aim, after a line with their number."""
    missed = {cost.address: cost.list_missed(by_cpu=by_cpu) for cost in costs}
    lines = [f"- `{address}`: {', '.join(aims)}" for address, aims in missed.items() if aims]
    unit = "CPU time" if by_cpu else "time that passed"
    return "\n".join((f"{len(lines)} of {len(costs)} addresses miss an aim by {unit}.", *lines))


def find_exit_code(costs: Iterable[PageCost]) -> int:
    """Return 1 if an address misses an aim, by the time that passed or by CPU time; 0 otherwise."""
    return int(any(cost.list_missed(by_cpu=by_cpu) for cost in costs for by_cpu in (False, True)))
