"""Requests each page in a process of its own and prints what it cost.

`python -m benchmarks.million.page_times REPEATS [ADDRESS …]`; the database is that of the environment. A process is a
fork after the web server's module was imported and had prepared the result pages: its first call connects to the
database. Other work on the machine lengthens the time that passes; it does not lengthen the CPU time beside it.
"""

import gzip
import json
import multiprocessing
import sys
import traceback
from dataclasses import asdict, dataclass
from statistics import median

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

import toolbench.wsgi
from benchmarks.million.addresses import list_addresses
from benchmarks.million.cpu_clock import CpuClock
from toolbench.lab.metrics.pools import refresh_pools

TIMEOUT_SECONDS = 600
MAX_CPU_MS = 5000  # far over every limit: more calls tell nothing new
LIMITS = {"first_ms": 400, "p95_ms": 100, "queries": 12, "kilobytes": 60}
CPU_LIMITS = {"first_cpu_ms": 400, "cpu_ms": 100, "queries": 12, "kilobytes": 60}
_HEAD = "| address | status | first, ms | its CPU | p95, ms | CPU | of it database | queries | kB |"


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

    def exceeds(self, limits: dict[str, int]) -> bool:
        """Return whether the page failed or a figure is larger than its limit."""
        return self.status >= 400 or any(getattr(self, name) > limit for name, limit in limits.items())

    def __str__(self) -> str:
        times = (self.first_ms, self.first_cpu_ms, self.p95_ms, self.cpu_ms, self.database_ms)
        cells = (f"`{self.address}`", self.status, *map(round, times), self.queries, round(self.kilobytes))
        over = " over" if self.exceeds(LIMITS) else ""
        return f"| {' | '.join(map(str, cells))} |{over}{' by CPU' if self.exceeds(CPU_LIMITS) else ''}"


def main() -> None:
    repeats, only = int(sys.argv[1]), tuple(sys.argv[2:])
    settings.ALLOWED_HOSTS = ["*"]
    addresses = [address for address in list_addresses() if not only or address.startswith(only)]
    while refresh_pools():  # as the sweep does in the background
        pass
    toolbench.wsgi.warm_up.prepare_results()
    print(f"{_HEAD}\n|{'---|' * _HEAD.count(' | ')}---|")
    costs = []
    for address in addresses:
        costs.append(_measure_in_fork(address, repeats))
        print(costs[-1], flush=True)
    print(f"\n{sum(cost.exceeds(LIMITS) for cost in costs)} of {len(costs)} addresses are over a limit: {LIMITS}.")
    print(f"{sum(cost.exceeds(CPU_LIMITS) for cost in costs)} are so by CPU: {CPU_LIMITS}.")


def _measure_in_fork(address: str, repeats: int) -> PageCost:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(json.dumps(asdict(_measure_or_fail(address, repeats)))))
    child.start()
    cost = PageCost(**json.loads(receiver.recv())) if receiver.poll(TIMEOUT_SECONDS) else PageCost(address, 504)
    child.kill()
    child.join()
    return cost


def _measure_or_fail(address: str, repeats: int) -> PageCost:
    """Measure an address; an exception counts as status 500."""
    try:
        return measure_address(address, repeats)
    except Exception:
        traceback.print_exc()
        return PageCost(address, 500)


def measure_address(address: str, repeats: int) -> PageCost:
    """Measure an address in this process: the first call, then `repeats` later ones."""
    client = Client()
    client.force_login(get_user_model().objects.get_or_create(username="owner")[0])
    connection.close()
    clocks: list[CpuClock] = []
    while len(clocks) <= repeats and not (clocks and clocks[-1].cpu_ms > MAX_CPU_MS):
        with CpuClock() as clock:
            response = client.get(address)
            body = b"".join(response) if response.streaming else response.content
        clocks.append(clock)
    with CaptureQueriesContext(connection) as captured:
        client.get(address)
    first, later = clocks[0], clocks[1:] or clocks
    times = sorted(clock.wall_ms for clock in later)
    return PageCost(
        address,
        response.status_code,
        first_ms=first.wall_ms,
        first_cpu_ms=first.cpu_ms,
        p95_ms=times[round(0.95 * (len(times) - 1))],
        cpu_ms=median(clock.cpu_ms for clock in later),
        database_ms=median(clock.database_ms for clock in later),
        queries=len(captured),
        kilobytes=len(gzip.compress(body)) / 1000,
    )


if __name__ == "__main__":
    main()
