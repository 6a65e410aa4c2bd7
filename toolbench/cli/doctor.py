"""Checks for `toolbench doctor`: programs, folder and ports that `up` needs, and the running instance."""

import http.client
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import redis

from toolbench.installation import build_command, get_var_folder
from toolbench.running.binaries import find_postgres_folder, find_valkey_server
from toolbench.running.errors import RunnerError
from toolbench.running.heartbeats import read_silent_seconds
from toolbench.running.local_model import explain_missing_local_model
from toolbench.running.options import StartOptions
from toolbench.running.paths import MIN_FREE_BYTES, Lock, Paths, State, read_state
from toolbench.running.servers import check_database

MIN_PYTHON = (3, 11)
MAX_SILENT_SECONDS = 60.0  # a process whose last heartbeat is older does not count as alive
_TIMEOUT_SECONDS = 5.0  # of a request to the broker or the site


@dataclass(frozen=True, slots=True)
class InstallationFinding:
    """Result of one check.

    Attributes:
        subject: what was checked.
        sentence: what was found and, if something is wrong, what to do.
        level: "ok"; "note" if Toolbench runs without this part; "error" if Toolbench cannot start or does
            not work.
    """

    subject: str
    sentence: str
    level: str = "ok"

    @property
    def is_error(self) -> bool:
        """Whether the finding is an error, so that the exit code is 1."""
        return self.level == "error"

    @property
    def line(self) -> str:
        """The finding as a line for the terminal."""
        return f"{self.level:<5}  {self.subject}: {self.sentence}"


def check_installation(environment: Mapping[str, str]) -> list[InstallationFinding]:
    """Check what `up` needs, and the running instance; if no instance runs, check the ports instead.

    Args:
        environment: environment variables with which `up` would be started.
    """
    paths = Paths(get_var_folder(environment))
    state = read_state(paths.state) if is_running(paths) else None
    findings = [_check_python(), _check_data_folder(paths.var)]
    findings += [_check_database(environment), _check_broker(environment), _check_local_model(environment)]
    if state is None:
        return [
            *findings,
            *_check_ports(environment),
            InstallationFinding("instance", f"not running: start it with `{build_command('up')}`"),
        ]
    return [*findings, *_check_instance(state, paths.logs)]


def is_running(paths: Paths) -> bool:
    """Return whether a process holds the lock of the data folder, as `up` does while it runs.

    Return False if this user cannot write to the data folder.
    """
    try:
        if not paths.var.is_dir():
            return False
        lock = Lock(paths.var / "up.lock")
    except OSError:
        return False
    try:
        return not lock.acquire()
    finally:
        lock.release()


def _check_python() -> InstallationFinding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < MIN_PYTHON:
        return InstallationFinding("Python", f"{version} is too old: install Python 3.11 or newer.", "error")
    return InstallationFinding("Python", version)


def _check_data_folder(folder: Path) -> InstallationFinding:
    existing_folder = next(parent for parent in (folder, *folder.parents) if os.path.exists(parent))
    if not os.access(existing_folder, os.W_OK | os.X_OK):
        sentence = f"{existing_folder} cannot be written: set TOOLBENCH_VAR to a folder of your own."
        return InstallationFinding("data folder", sentence, "error")
    free_bytes = shutil.disk_usage(existing_folder).free
    if free_bytes < MIN_FREE_BYTES:
        return InstallationFinding(
            "data folder", f"the disk that holds {folder} has less than 200 MB left: make room.", "error"
        )
    return InstallationFinding("data folder", f"{folder}, {free_bytes / 1e9:.1f} GB free")


def _check_program(subject: str, find_program: Callable[[], Path]) -> InstallationFinding:
    try:
        return InstallationFinding(subject, f"program {find_program()}")
    except RunnerError as error:
        return InstallationFinding(subject, str(error), "error")


def _check_database(environment: Mapping[str, str]) -> InstallationFinding:
    url = environment.get("DATABASE_URL", "")
    if not url:
        return _check_program("PostgreSQL", lambda: find_postgres_folder() / "bin" / "postgres")
    try:
        check_database(url)
    except RunnerError as error:
        return InstallationFinding("PostgreSQL", str(error), "error")
    return InstallationFinding("PostgreSQL", "the database of DATABASE_URL answers")


def _check_broker(environment: Mapping[str, str]) -> InstallationFinding:
    url = environment.get("REDIS_URL", "")
    if not url:
        return _check_program("Valkey", find_valkey_server)
    try:
        with closing(redis.Redis.from_url(url, socket_timeout=_TIMEOUT_SECONDS)) as client:
            client.ping()
    except (redis.RedisError, ValueError, OSError):
        sentence = "the server of REDIS_URL does not answer: start it, correct the address, or leave REDIS_URL out."
        return InstallationFinding("Valkey", sentence, "error")
    return InstallationFinding("Valkey", "the server of REDIS_URL answers")


def _check_local_model(environment: Mapping[str, str]) -> InstallationFinding:
    if environment.get("LOCAL_MODEL") == "0":
        return InstallationFinding("local model", "left out by LOCAL_MODEL=0")
    reason = explain_missing_local_model()
    return (
        InstallationFinding("local model", reason, "note")
        if reason
        else InstallationFinding("local model", "can be served")
    )


def _check_ports(environment: Mapping[str, str]) -> Iterator[InstallationFinding]:
    """Yield a finding about the port of the site, and a note if only the port of the gateway is taken."""
    try:
        options = StartOptions.from_environment(environment)
        options.listen().close()
    except RunnerError as error:
        yield InstallationFinding("port", str(error), "error")
        return
    yield InstallationFinding("port", f"{options.host}:{options.port} is free")
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        socket.create_server((options.host, options.gateway_port), family=family).close()
    except OSError:
        yield InstallationFinding(
            "gateway's port", f"{options.gateway_port} is taken: the gateway would be left out.", "note"
        )


def _check_instance(state: State, logs: Path) -> Iterator[InstallationFinding]:
    """Yield a finding about the site of the running instance and one about its workers and schedulers.

    Args:
        state: state of the running instance.
        logs: folder of its log files.
    """
    if _is_site_ready(state.base):
        yield InstallationFinding("instance", f"runs at {state.base}/")
    else:
        yield InstallationFinding(
            "instance", f"runs, but {state.base}/ does not answer: see {logs / 'web.log'}.", "error"
        )
    silent_seconds = read_silent_seconds(state.environment["DATABASE_URL"])
    if silent_seconds is None:
        yield InstallationFinding("processes", "the database of the running instance does not answer.", "error")
        return
    live_count = sum(seconds <= MAX_SILENT_SECONDS for seconds in silent_seconds.values())
    if live_count:
        yield InstallationFinding(
            "processes", f"{live_count} workers and schedulers sent a heartbeat in the last minute"
        )
    else:
        sentence = (
            f"no worker or scheduler sent a heartbeat in the last minute: wait a minute after a start, or see {logs}."
        )
        yield InstallationFinding("processes", sentence, "error")


def _is_site_ready(base_url: str) -> bool:
    parts = urlsplit(base_url)
    connection_class = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    with closing(connection_class(parts.netloc, timeout=_TIMEOUT_SECONDS)) as connection:
        try:
            connection.request("GET", "/health/live")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
