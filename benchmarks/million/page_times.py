"""Requests each page in a process of its own and prints what it cost.

`python -m benchmarks.million.page_times REPEATS [ADDRESS …]`; the database is that of the environment. A process is a
fork after the web server's module was imported and had prepared the result pages: its first call connects to the
database. Other work on the machine lengthens the time that passes; it does not lengthen the CPU time beside it. A busy
host of a virtual machine lengthens both, so reference work is measured before each address. Exits with 1 if an address
misses an aim, by the time that passed or by CPU time, or if no address begins so.
"""

import gzip
import json
import multiprocessing
import sys
import traceback
from dataclasses import asdict
from statistics import median

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

import toolbench.wsgi
from benchmarks.million.addresses import list_addresses
from benchmarks.million.aims import PageCost, find_exit_code, render_missed
from benchmarks.million.cpu_clock import CpuClock
from benchmarks.reference_work import measure_reference_ms, render_reference
from toolbench.lab.metrics.pools import refresh_pools

TIMEOUT_SECONDS = 600
MAX_CPU_MS = 5000  # far over every limit: more calls tell nothing new
_HEAD = "| address | status | first, ms | its CPU | p95, ms | CPU | of it database | queries | kB |"


def main() -> int:
    """Return the exit code: 1 if an address missed an aim, or if there is none to measure."""
    repeats, only = int(sys.argv[1]), tuple(sys.argv[2:])
    settings.ALLOWED_HOSTS, settings.API_READS_PER_MINUTE = ["*"], sys.maxsize
    addresses = [address for address in list_addresses() if not only or address.startswith(only)]
    if not addresses:
        print(f"No address begins with {' or '.join(only)}.")
        return 1
    while refresh_pools():  # as the sweep does in the background
        pass
    toolbench.wsgi.prepare_application()
    print(f"{_HEAD}\n|{'---|' * _HEAD.count(' | ')}---|")
    costs, reference_times = [], [measure_reference_ms()]
    for address in addresses:
        reference_times.append(measure_reference_ms())
        costs.append(_measure_in_fork(address, repeats))
        print(costs[-1], flush=True)
    print(f"\n{render_reference(reference_times)}")
    for by_cpu in (False, True):
        print(f"\n{render_missed(costs, by_cpu=by_cpu)}")
    return find_exit_code(costs)


def sign_in() -> Client:
    """Return a client with the session of an owner of the site, who may read every page."""
    roles = {"is_staff": True, "is_superuser": True}
    user, _ = get_user_model().objects.update_or_create(username="owner", defaults=roles)
    client = Client()
    client.force_login(user)
    return client


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
    client = sign_in()
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
    sys.exit(main())
