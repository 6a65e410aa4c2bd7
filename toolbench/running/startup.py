"""`make up`: starts everything in order, says where it is, and watches over it until it is asked to stop."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from toolbench.running.child_process import Child, Spec
from toolbench.running.database_user import confined
from toolbench.running.errors import Problem, say
from toolbench.running.heartbeats import silent_seconds
from toolbench.running.options import Choices, why_no_local_model
from toolbench.running.paths import ROOT, Lock, Places, State, read_state, remove_sockets, socket_folder
from toolbench.running.processes import environment, processes
from toolbench.running.ready_lines import Register
from toolbench.running.servers import Postgres, Valkey, check_database
from toolbench.running.supervisor import Supervisor

_PATIENCE_SECONDS = 120
_LEFTOVER_SECONDS = 30
_HEARTBEATS_EVERY = 5.0
_TICK = 0.1
_LONGEST_PREPARATION = 24 * 3600.0
_SERVERS = frozenset({"postgres", "valkey"})


def seconds_before(environment: Mapping[str, str], now: float) -> float:
    """Return for how many seconds `make up` ran before this process, installing packages among them.

    Args:
        now: seconds since the epoch, as the Makefile's TOOLBENCH_STARTED_AT.

    Returns:
        0 where the environment does not say, or says something implausible, as after a change of the clock.
    """
    try:
        seconds = now - float(environment.get("TOOLBENCH_STARTED_AT", ""))
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds <= _LONGEST_PREPARATION else 0.0


class Stopped(Exception):
    """Somebody asked to stop while it was still starting."""


class Start:
    """One life of `make up`, from the first check to the last process stopped."""

    def __init__(self, choices: Choices, places: Places) -> None:
        self._began = time.monotonic() - seconds_before(os.environ, time.time())
        self._choices = choices
        self._places = places
        self._asked_to_stop = 0
        self._children = Lock(places.var / "children.lock")
        limit = float(os.environ.get("TOOLBENCH_SILENT_SECONDS", "60"))
        self._supervisor = Supervisor(places.logs, self._children.handle, say=say, silent_limit=limit)

    def run(self) -> None:
        """Returns when everything has stopped. Raises Problem when it cannot start; then, too, nothing is left."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)
        with self._choices.listen() as web_socket:
            self._wait_for_leftovers()
            try:
                environment_of_all = self._start(web_socket)
                self._watch(environment_of_all["DATABASE_URL"])
            except Stopped:
                pass
            finally:
                self._stop()

    def _start(self, web_socket: socket.socket) -> Mapping[str, str]:
        sockets = socket_folder(read_state(self._places.state))
        shared = {"TOOLBENCH_VAR": str(self._places.var), "ALLOWED_HOSTS": ",".join(self._choices.names)}
        if self._choices.database_url:
            check_database(self._choices.database_url)
        shared["DATABASE_URL"] = self._choices.database_url or self._start_postgres(sockets)
        shared["REDIS_URL"] = self._choices.redis_url or self._start_valkey(sockets)
        shared["TOOLBENCH_BASE"] = self._choices.base
        State(self._choices.base, str(sockets), shared).write(self._places.state)
        env = environment(shared)
        self._prepare(env)
        self._supervisor.register = Register(env, say)
        first, *others = self._processes(env, web_socket)
        web = self._supervisor.add(first)
        link = self._link(env)
        self._wait_until(web, self._page_answers)
        self._greet(link)
        for spec in others:
            self._supervisor.add(spec)
        return env

    def _start_postgres(self, sockets: Path) -> str:
        server = Postgres(self._places.var / "postgres", sockets)
        server.prepare(self._places.logs / "postgres.log")
        spec = Spec("postgres", server.command(), server.environment, self._places.var, server.stop_signal, 30.0)
        self._wait_until(self._supervisor.add(spec), server.is_ready)
        server.make_database()
        return server.url()

    def _start_valkey(self, sockets: Path) -> str:
        server = Valkey(self._places.var / "valkey", sockets)
        server.prepare()
        spec = Spec("valkey", server.command(), server.environment, server.working_folder, server.stop_signal)
        self._wait_until(self._supervisor.add(spec), server.is_ready)
        return server.url()

    def _prepare(self, env: Mapping[str, str]) -> None:
        command = confined([sys.executable, "manage.py", "prepare"], death_signal=signal.SIGKILL)
        child = Child(Spec("prepare", command, env, ROOT), self._places.logs, (self._children.handle,))
        while child.exit_code() is None:
            self._pause()
        if child.exit_code() != 0:
            last_words = child.log.read_text(errors="replace").strip().rpartition("\n")[2]
            raise Problem(f"The database could not be brought up to date ({last_words}); the whole story: {child.log}.")

    def _processes(self, env: Mapping[str, str], web_socket: socket.socket) -> list[Spec]:
        without = why_no_local_model() if self._choices.local_model else ""
        if without:
            say(without)
        local_model = self._choices.local_model and not without
        told = {**env, "LOCAL_MODEL": "1" if local_model else "0"}
        return processes(told, workers=self._choices.workers, web_handle=web_socket.fileno(), local_model=local_model)

    def _page_answers(self) -> bool:
        host = "127.0.0.1" if self._choices.listens_everywhere else self._choices.host
        connection = http.client.HTTPConnection(host, self._choices.port, timeout=5)
        try:
            connection.request("GET", "/sign-in/", headers={"Host": "127.0.0.1"})
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _link(self, env: Mapping[str, str]) -> str:
        command = [sys.executable, "manage.py", "link"]
        printed = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        return printed.stdout.strip() or "print it with `make link`"

    def _greet(self, link: str) -> None:
        seconds = time.monotonic() - self._began
        say(f"\nToolbench is ready at {self._choices.base}/")
        say(f"It took {seconds:.0f} s from the start of the command.")
        say(f"Sign in (one use, within 24 hours): {link}")
        say("Worker and local model follow. Ctrl-C stops everything; data stays in var/.\n")
        if self._choices.listens_everywhere and not self._choices.allowed_hosts:
            say("It listens on every address but answers only to 127.0.0.1: name this machine in ALLOWED_HOSTS.")

    def _watch(self, database_url: str) -> None:
        beats_at = time.monotonic()
        while True:
            self._pause()
            if time.monotonic() < beats_at:
                continue
            beats_at = time.monotonic() + _HEARTBEATS_EVERY
            asked_at = time.monotonic()
            self._supervisor.replace_silent(silent_seconds(database_url), asked_at)

    def _wait_until(self, child: Child, is_ready: Callable[[], bool]) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while not is_ready():
            if child.exit_code() is not None or time.monotonic() > until:
                raise Problem(f"{child.spec.name} does not start; its own words are in {child.log}.")
            self._pause()

    def _wait_for_leftovers(self) -> None:
        def tell() -> None:
            say("Waiting for the processes of an earlier start to end.")

        if not self._children.take(seconds=_LEFTOVER_SECONDS, waiting=tell):
            raise Problem(f"Processes of an earlier start still use {self._places.var}: stop them and try again.")

    def _pause(self) -> None:
        if self._asked_to_stop:
            raise Stopped
        self._supervisor.tick()
        time.sleep(_TICK)

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._asked_to_stop += 1

    def _stop(self) -> None:
        if self._asked_to_stop:
            say("\nStopping; Ctrl-C again to stop at once.")
        already = self._asked_to_stop
        if register := self._supervisor.register:
            register.close()
        for names in (self._supervisor.names - _SERVERS, {"valkey"}, {"postgres"}):
            self._supervisor.stop(names, hurry=lambda: self._asked_to_stop > already)
        if state := read_state(self._places.state):
            remove_sockets(state)
        self._places.state.unlink(missing_ok=True)
        self._children.release()
