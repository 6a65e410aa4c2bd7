"""Run of `make up`: it starts all processes, prints the address and supervises the processes until a stop."""

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from toolbench.installation import ROOT, build_command
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.database_user import build_confined_command
from toolbench.running.errors import RunnerError, print_line
from toolbench.running.heartbeats import read_silent_seconds
from toolbench.running.local_model import explain_missing_local_model
from toolbench.running.options import StartOptions
from toolbench.running.paths import Lock, Paths, State, make_socket_folder, read_state, remove_sockets
from toolbench.running.processes import build_environment, build_manage_command, build_specs
from toolbench.running.ready_lines import ServiceRegistrar
from toolbench.running.servers import Postgres, Valkey, check_database
from toolbench.running.supervisor import Supervisor

_MAX_WAIT_SECONDS = 120
_MAX_LEFTOVER_SECONDS = 30
_HEARTBEAT_CHECK_SECONDS = 5.0
_TICK_SECONDS = 0.1
_MAX_PREPARATION_SECONDS = 24 * 3600.0
_SERVER_NAMES = frozenset({"postgres", "valkey"})


def compute_elapsed_seconds(environment: Mapping[str, str], now: float) -> float:
    """Return the seconds from the start of `make up` to `now`, the installation of packages included.

    Args:
        environment: environment variables; the Makefile sets TOOLBENCH_STARTED_AT to seconds since the epoch.
        now: seconds since the epoch.

    Returns:
        0 if the variable is missing or implausible, for instance after a change of the clock.
    """
    try:
        seconds = now - float(environment.get("TOOLBENCH_STARTED_AT", ""))
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds <= _MAX_PREPARATION_SECONDS else 0.0


class StopRequested(Exception):
    """Exception that ends the start or the supervision after a stop signal."""


class Startup:
    """One run of `make up`, from the first check until the last process has ended."""

    def __init__(self, options: StartOptions, paths: Paths) -> None:
        self._started_at = time.monotonic() - compute_elapsed_seconds(os.environ, time.time())
        self._options = options
        self._paths = paths
        self._stop_requests = 0
        self._sockets: Path | None = None  # folder that this run has created
        self._children_lock = Lock(paths.var / "children.lock")
        self._supervisor = Supervisor(
            paths.logs,
            self._children_lock.handle,
            print_message=print_line,
            max_silent_seconds=options.max_silent_seconds,
        )

    def run(self) -> None:
        """Start all processes, supervise them until a stop signal, and stop them.

        Raises:
            RunnerError: the port or the external database cannot be used, processes of an earlier start still run, a
                process cannot start, or the database cannot be migrated. The processes that had started have been
                stopped.
        """
        for stop_signal in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if stop_signal != signal.SIGHUP or signal.getsignal(stop_signal) != signal.SIG_IGN:  # `nohup` ignores it
                signal.signal(stop_signal, self._count_stop_request)
        with self._options.listen() as web_socket:
            self._wait_for_leftovers()
            try:
                environment = self._start(web_socket)
                self._watch(environment["DATABASE_URL"])
            except StopRequested:
                pass
            finally:
                self._stop()

    def _start(self, web_socket: socket.socket) -> Mapping[str, str]:
        """Start all processes, print the sign-in link, and return the environment that the processes share."""
        self._sockets = sockets = make_socket_folder(read_state(self._paths.state))
        shared = {"TOOLBENCH_VAR": str(self._paths.var), "ALLOWED_HOSTS": ",".join(self._options.site_hosts)}
        if self._options.database_url:
            check_database(self._options.database_url)
        shared["DATABASE_URL"] = self._options.database_url or self._start_postgres(sockets)
        shared["REDIS_URL"] = self._options.redis_url or self._start_valkey(sockets)
        shared["TOOLBENCH_BASE"] = self._options.base
        State(self._options.base, str(sockets), shared).write(self._paths.state)
        env = build_environment(shared)
        self._prepare(env)
        self._supervisor.registrar = ServiceRegistrar(env, print_line)
        web_spec, *other_specs = self._build_specs(env, web_socket)
        web = self._supervisor.add(web_spec)
        link = self._create_link(env)
        self._wait_until(web, self._is_page_ready)
        self._print_greeting(link)
        for spec in other_specs:
            self._supervisor.add(spec)
        return env

    def _start_postgres(self, sockets: Path) -> str:
        server = Postgres(self._paths.var / "postgres", sockets)
        server.prepare(self._paths.logs / "postgres.log")
        command = server.build_command()
        spec = ChildSpec(
            "postgres", command, server.environment, self._paths.var, server.stop_signal, stop_seconds=30.0
        )
        self._wait_until(self._supervisor.add(spec), server.is_ready)
        server.create_database()
        return server.build_url()

    def _start_valkey(self, sockets: Path) -> str:
        server = Valkey(self._paths.var / "valkey", sockets)
        server.prepare()
        command = server.build_command()
        spec = ChildSpec("valkey", command, server.environment, server.working_folder, server.stop_signal)
        self._wait_until(self._supervisor.add(spec), server.is_ready)
        return server.build_url()

    def _prepare(self, env: Mapping[str, str]) -> None:
        """Run `manage.py prepare`, which migrates the database, and wait until it has ended.

        Raises:
            StopRequested: a stop signal arrived; the command has been stopped.
            RunnerError: the command failed.
        """
        command = build_confined_command(build_manage_command("prepare"), death_signal=signal.SIGKILL)
        child = ChildProcess(ChildSpec("prepare", command, env, ROOT), self._paths.logs, (self._children_lock.handle,))
        try:
            while child.poll_exit_code() is None:
                self._tick()
        finally:
            child.stop()
        if child.poll_exit_code() != 0:
            reason = child.read_last_log_line()
            raise RunnerError(f"The database could not be brought up to date ({reason}): see {child.log}.")

    def _build_specs(self, env: Mapping[str, str], web_socket: socket.socket) -> list[ChildSpec]:
        missing_reason = explain_missing_local_model() if self._options.local_model else ""
        if missing_reason:
            print_line(missing_reason)
        local_model = self._options.local_model and not missing_reason
        local_env = {**env, "LOCAL_MODEL": "1" if local_model else "0"}
        return build_specs(
            local_env,
            workers=self._options.workers,
            web_handle=web_socket.fileno(),
            local_model=local_model,
            gateway=(self._options.host, self._options.gateway_port),
        )

    def _is_page_ready(self) -> bool:
        host = "127.0.0.1" if self._options.listens_everywhere else self._options.host
        connection = http.client.HTTPConnection(host, self._options.port, timeout=5)
        try:
            connection.request("GET", "/sign-in/", headers={"Host": "127.0.0.1"})
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _create_link(self, env: Mapping[str, str]) -> str:
        """Return a new sign-in link, or advice on how to print one if it could not be created."""
        command = build_manage_command("link")
        process = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        return process.stdout.strip() or f"print it with `{build_command('link')}`"

    def _print_greeting(self, link: str) -> None:
        seconds = time.monotonic() - self._started_at
        print_line(f"\nToolbench is ready at {self._options.base}/")
        print_line(f"It took {seconds:.0f} s from the start of the command.")
        print_line(f"Sign in (one use, within 24 hours): {link}")
        print_line(f"The other processes start now. Ctrl-C stops everything; data stays in {self._paths.var}.\n")
        if self._options.listens_everywhere and not self._options.site_hosts:
            print_line(
                "Toolbench listens on every address but answers only at 127.0.0.1: name this machine in ALLOWED_HOSTS."
            )

    def _watch(self, database_url: str) -> None:
        """Supervise the processes until `_tick` raises StopRequested."""
        next_check_at = time.monotonic()
        while True:
            self._tick()
            if time.monotonic() < next_check_at:
                continue
            next_check_at = time.monotonic() + _HEARTBEAT_CHECK_SECONDS
            queried_at = time.monotonic()
            self._supervisor.restart_silent(read_silent_seconds(database_url), queried_at)
            self._supervisor.limit_logs()

    def _wait_until(self, child: ChildProcess, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _MAX_WAIT_SECONDS
        while not is_ready():
            if child.poll_exit_code() is not None or time.monotonic() > deadline:
                raise RunnerError(f"{child.spec.name} does not start: see {child.log}.")
            self._tick()

    def _wait_for_leftovers(self) -> None:
        def print_waiting() -> None:
            print_line("Waiting for the processes of an earlier start to end.")

        if not self._children_lock.acquire(seconds=_MAX_LEFTOVER_SECONDS, on_wait=print_waiting):
            raise RunnerError(f"Processes of an earlier start still use {self._paths.var}: stop them and try again.")

    def _tick(self) -> None:
        if self._stop_requests:
            raise StopRequested
        self._supervisor.tick()
        time.sleep(_TICK_SECONDS)

    def _count_stop_request(self, signal_number: int, frame: FrameType | None) -> None:
        self._stop_requests += 1

    def _stop(self) -> None:
        if self._stop_requests:
            print_line("\nStopping; Ctrl-C again to stop at once.")
        earlier_requests = self._stop_requests
        if registrar := self._supervisor.registrar:
            registrar.close()
        for names in (self._supervisor.names - _SERVER_NAMES, {"valkey"}, {"postgres"}):
            self._supervisor.stop(names, must_kill=lambda: self._stop_requests > earlier_requests)
        if self._sockets:
            remove_sockets(self._sockets)
        self._paths.state.unlink(missing_ok=True)
        self._children_lock.release()
