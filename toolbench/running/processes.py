"""Which processes make up Toolbench, beside the two servers: the same in `make up` and `docker-compose.yml`."""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace

from toolbench.running.child_process import Spec
from toolbench.running.database_user import confined
from toolbench.running.paths import ROOT

SHIFTS_PER_WORKER = 8
MAX_REQUEST_LINE = 8_190  # bytes, the most that gunicorn takes: links to trials list runs, cells and versions
THREADS_OF_WEB = 8
ASKS_WORKERS = frozenset({"scheduler", "valkey"})  # a worker beats when the scheduler asks it to, through the broker


def environment(shared: Mapping[str, str]) -> dict[str, str]:
    """The environment of every process: the addresses in `shared` and all of the caller's, so that keys of providers
    pass through."""
    return {
        **os.environ,
        **shared,
        "DJANGO_SETTINGS_MODULE": "toolbench.settings",
        "STATIC_COLLECTED": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(ROOT),
    }


def worker_command(name: str) -> list[str]:
    command = [sys.executable, "-m", "celery", "-A", "toolbench.celery", "worker", "-n", f"{name}@%h", "-l", "INFO"]
    command += ["-P", "threads", "-c", str(SHIFTS_PER_WORKER)]
    return [*command, "--without-gossip", "--without-mingle", "--without-heartbeat"]


def web_command(handle: int) -> list[str]:
    """`handle` is the listening socket."""
    command = [sys.executable, "-m", "gunicorn", "toolbench.wsgi", "--bind", f"fd://{handle}", "--no-control-socket"]
    command += ["--limit-request-line", str(MAX_REQUEST_LINE)]
    return [*command, "--worker-class", "gthread", "--workers", "1", "--threads", str(THREADS_OF_WEB)]


def processes(env: Mapping[str, str], *, workers: int, web_handle: int, local_model: bool) -> list[Spec]:
    """In the order in which they are started; the web server is the first."""
    manage = [sys.executable, "manage.py"]
    python = [sys.executable, "-m"]
    specs = [
        _spec("web", web_command(web_handle), env, handed=(web_handle,)),
        *(
            replace(_spec(f"worker-{number}", worker_command(f"worker-{number}"), env, beats=True), needs=ASKS_WORKERS)
            for number in range(1, workers + 1)
        ),
        _spec("scheduler", [*manage, "scheduler"], env, beats=True),
        _spec("simulated", [*python, "toolbench.providers.simulated"], env, announces=True),
    ]
    if local_model:
        for template in ("own", "tools"):
            command = [*python, "toolbench.providers.llama", "--template", template]
            specs.append(_spec(f"local-{template}", command, env, announces=True))
    return specs


def _spec(
    name: str,
    command: list[str],
    env: Mapping[str, str],
    *,
    beats: bool = False,
    announces: bool = False,
    handed: tuple[int, ...] = (),
) -> Spec:
    death = signal.SIGTERM if name == "web" else signal.SIGKILL
    return Spec(
        name,
        confined(command, death_signal=death),
        env,
        ROOT,
        beats=beats,
        announces=announces,
        handed=handed,
    )
