"""Commands of all processes except PostgreSQL and Valkey, for `make up` and `docker-compose.yml`."""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace

from toolbench.installation import ROOT, build_python_path
from toolbench.running.child_process import ChildSpec
from toolbench.running.database_user import build_confined_command

SESSIONS_PER_WORKER = 8
MAX_REQUEST_LINE_BYTES = 8_190  # gunicorn's maximum, because the URLs of lists of trials are long
WEB_THREADS = 8
# With fixed thresholds of 1 MiB, glibc returns the memory of a large body to the system as soon as it is free. By
# default glibc raises the thresholds when it frees a large body, so that it keeps the memory of later ones.
_MALLOC_SETTINGS = {"MALLOC_MMAP_THRESHOLD_": "1048576", "MALLOC_TRIM_THRESHOLD_": "1048576"}
# A worker sends a heartbeat when the scheduler asks for one through the broker, which is Valkey.
WORKER_DEPENDENCIES = frozenset({"scheduler", "valkey"})


def build_environment(shared: Mapping[str, str]) -> dict[str, str]:
    """Build the environment of all processes except PostgreSQL and Valkey.

    It contains the variables of this process, among them keys of providers. Variables in `shared` take precedence.
    """
    return {
        **_MALLOC_SETTINGS,
        **os.environ,
        **shared,
        "DJANGO_SETTINGS_MODULE": "toolbench.settings",
        "STATIC_COLLECTED": "1",
        "PYTHONUNBUFFERED": "1",
        **build_python_path(),
    }


def build_manage_command(*arguments: str) -> list[str]:
    """Build the command of a management command with its arguments."""
    return [sys.executable, "-m", "toolbench.manage", *arguments]


def build_worker_command(name: str) -> list[str]:
    """Build the command of a worker; `name` is its name on this host."""
    command = [sys.executable, "-m", "celery", "-A", "toolbench.celery", "worker", "-n", f"{name}@%h", "-l", "INFO"]
    command += ["-P", "threads", "-c", str(SESSIONS_PER_WORKER)]
    return [*command, "--without-gossip", "--without-mingle", "--without-heartbeat"]


def build_web_command(handle: int) -> list[str]:
    """Build the command of the web server.

    Args:
        handle: file descriptor of the listening socket.
    """
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "toolbench.wsgi:prepare_application()",
        "--bind",
        f"fd://{handle}",
        "--no-control-socket",
    ]
    command += ["--config", "python:toolbench.gunicorn_config"]
    command += ["--limit-request-line", str(MAX_REQUEST_LINE_BYTES)]
    return [*command, "--worker-class", "gthread", "--workers", "1", "--threads", str(WEB_THREADS)]


def build_specs(
    env: Mapping[str, str], *, workers: int, web_handle: int, local_model: bool, gateway: tuple[str, int]
) -> list[ChildSpec]:
    """Build the specifications of the processes in the order of their start, the web server first.

    Args:
        env: environment of the processes.
        workers: number of workers.
        web_handle: file descriptor of the listening socket of the site.
        local_model: whether to serve the local model.
        gateway: host and port of the gateway.
    """
    python = [sys.executable, "-m"]
    specs = [
        replace(_build_spec("web", build_web_command(web_handle), env), inherited_handles=(web_handle,)),
        *(
            replace(
                _build_spec(f"worker-{number}", build_worker_command(f"worker-{number}"), env, has_heartbeats=True),
                depends_on=WORKER_DEPENDENCIES,
            )
            for number in range(1, workers + 1)
        ),
        _build_spec("scheduler", build_manage_command("scheduler"), env, has_heartbeats=True),
        _build_spec("simulated", [*python, "toolbench.providers.simulated"], env, has_ready_line=True),
        _build_spec(
            "gateway",
            [*python, "toolbench.gateway", "--host", gateway[0], "--port", str(gateway[1])],
            env,
            has_ready_line=True,
        ),
    ]
    if local_model:
        for template in ("own", "tools"):  # the chat template of the model file, and that of Toolbench
            command = [*python, "toolbench.providers.llama", "--template", template]
            specs.append(_build_spec(f"local-{template}", command, env, has_ready_line=True))
    return specs


def _build_spec(
    name: str,
    command: list[str],
    env: Mapping[str, str],
    *,
    has_heartbeats: bool = False,
    has_ready_line: bool = False,
) -> ChildSpec:
    # After SIGTERM, the web server stops its own child processes before it ends.
    death_signal = signal.SIGTERM if name == "web" else signal.SIGKILL
    return ChildSpec(
        name,
        build_confined_command(command, death_signal=death_signal),
        env,
        ROOT,
        has_heartbeats=has_heartbeats,
        has_ready_line=has_ready_line,
    )
