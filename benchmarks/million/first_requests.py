"""First requests of a user to a web server that has just started: `python -m benchmarks.million.first_requests`.

Each address gets a gunicorn of its own, started by the command of `make up` and ready when `make up` would say so: the
page *Sign in* answers. The request travels by HTTP with the cookie of a session. The database is that of the
environment. `page_times` measures the same in forks, which is faster and counts CPU time; here both can be compared.
"""

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

import benchmarks.django_setup  # noqa: F401
from benchmarks.million.page_times import sign_in
from toolbench.installation import ROOT
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import Run
from toolbench.running.processes import build_web_command

READY_SECONDS = 120
STOP_SECONDS = 60
_PAGES = ("/", "/runs/", "/trials/", "/matrix/", "/failures/", "/latency/", "/decide/", "/compare/", "/trend/")
_HEAD = "| first request to a new web server | status | ms |\n|---|---|---|"


def main() -> None:
    addresses = tuple(sys.argv[1:]) or (*_PAGES, *_list_run_addresses())
    cookie = f"{settings.SESSION_COOKIE_NAME}={sign_in().cookies[settings.SESSION_COOKIE_NAME].value}"
    while refresh_pools():  # as the sweep does in the background
        pass
    print(_HEAD)
    for address in addresses:
        with _serve() as port:
            status, milliseconds = _request(port, address, cookie)
        print(f"| `{address}` | {status} | {milliseconds:.0f} |", flush=True)
    print()


def _list_run_addresses() -> list[str]:
    run = Run.objects.filter(simulated=False).order_by("-trial_count", "pk")[0]
    return [f"/runs/{run.pk}/", *(f"/{page}/?run={run.pk}" for page in ("matrix", "failures", "latency", "decide"))]


@contextmanager
def _serve() -> Iterator[int]:
    """Start a web server, wait until it is ready, yield its port, and stop it."""
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryFile() as log:
        port, handle = listener.getsockname()[1], listener.fileno()
        command = build_web_command(handle)
        server = subprocess.Popen(command, cwd=ROOT, env=os.environ, pass_fds=(handle,), stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + READY_SECONDS
            while _request(port, "/sign-in/", "")[0] != http.HTTPStatus.OK:
                if server.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"The web server did not start:\n{log.read().decode(errors='replace')}")
            yield port
        finally:
            server.terminate()
            server.wait(STOP_SECONDS)


def _request(port: int, address: str, cookie: str) -> tuple[int, float]:
    """Return the status of a GET request and its milliseconds; status 0 without an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_SECONDS)
    started_at = time.perf_counter()
    try:
        connection.request("GET", address, headers={"Host": "127.0.0.1", "Cookie": cookie})
        response = connection.getresponse()
        response.read()
        return response.status, 1000 * (time.perf_counter() - started_at)
    except (OSError, http.client.HTTPException):
        return 0, 0.0
    finally:
        connection.close()


if __name__ == "__main__":
    main()
