"""Requests each page in a process of its own and prints what it cost.

`python -m benchmarks.million.page_times REPEATS [ADDRESS …]`; the database is that of the environment. A process is a
fork after the web server's module was imported: its first call compiles templates and connects to the database.
"""

import gzip
import json
import multiprocessing
import sys
import time
import traceback
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

import toolbench.wsgi  # noqa: F401
from benchmarks.million.addresses import list_addresses
from toolbench.lab.metrics.pools import refresh_pools

TIMEOUT_SECONDS = 600
_NO_FIGURES = (0.0, 0.0, 0, 0.0)
LIMITS = {"first": 400, "p95": 100, "queries": 12, "kB": 60}


@dataclass(frozen=True, slots=True)
class PageCost:
    """What one address cost.

    Attributes:
        first_ms: the first call of a process.
        p95_ms: of the later calls.
        kilobytes: after gzip.
    """

    address: str
    status: int
    first_ms: float
    p95_ms: float
    queries: int
    kilobytes: float


def main() -> None:
    repeats, only = int(sys.argv[1]), tuple(sys.argv[2:])
    settings.ALLOWED_HOSTS = ["*"]
    addresses = [address for address in list_addresses() if not only or address.startswith(only)]
    while refresh_pools():  # as the sweep does in the background
        pass
    connection.close()
    print("| address | status | first, ms | p95, ms | queries | kB |\n|---|---|---|---|---|---|")
    over = 0
    for address in addresses:
        cost = _measure_in_fork(address, repeats)
        over += _is_over(cost)
        print(
            f"| `{cost.address}` | {cost.status} | {cost.first_ms:.0f} | {cost.p95_ms:.0f} | {cost.queries} "
            f"| {cost.kilobytes:.0f} |{' over' if _is_over(cost) else ''}",
            flush=True,
        )
    print(f"\n{over} of {len(addresses)} addresses are over a limit: {LIMITS}.")


def _is_over(cost: PageCost) -> bool:
    figures = (cost.first_ms, cost.p95_ms, cost.queries, cost.kilobytes)
    return cost.status >= 400 or any(figure > limit for figure, limit in zip(figures, LIMITS.values(), strict=True))


def _measure_in_fork(address: str, repeats: int) -> PageCost:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(json.dumps(_measure_or_fail(address, repeats))))
    child.start()
    figures = json.loads(receiver.recv()) if receiver.poll(TIMEOUT_SECONDS) else [address, 504, *_NO_FIGURES]
    child.kill()
    child.join()
    return PageCost(*figures)


def _measure_or_fail(address: str, repeats: int) -> list[object]:
    """Measure an address; an exception counts as status 500."""
    try:
        return _measure(address, repeats)
    except Exception:
        traceback.print_exc()
        return [address, 500, *_NO_FIGURES]


def _measure(address: str, repeats: int) -> list[object]:
    client = Client()
    client.force_login(get_user_model().objects.get_or_create(username="owner")[0])
    connection.close()
    times = []
    for _ in range(1 + repeats):
        began = time.perf_counter()
        response = client.get(address)
        body = b"".join(response) if response.streaming else response.content
        times.append(1000 * (time.perf_counter() - began))
        if times[-1] > 5000:
            break  # far over every limit: more calls tell nothing new
    with CaptureQueriesContext(connection) as captured:
        client.get(address)
    later = sorted(times[1:]) or times
    p95 = later[min(len(later) - 1, round(0.95 * (len(later) - 1)))]
    return [address, response.status_code, times[0], p95, len(captured), len(gzip.compress(body)) / 1000]


if __name__ == "__main__":
    main()
