"""Supervision of child processes, which restarts ended and silent ones after a growing pause."""

import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.ready_lines import ServiceRegistrar
from toolbench.running.silence import SETTLED_SECONDS, HeartbeatTimer

MIN_RESTART_SECONDS = 0.5
MAX_RESTART_SECONDS = 30.0
START_FAILED_EXIT_CODE = 3  # of a local server that cannot start, as in providers/ready_line.py


@dataclass(slots=True)
class SupervisedChild:
    """Child process under supervision, through all its restarts.

    Attributes:
        spec: the specification.
        heartbeat_timer: measures how long the child is silent.
        child: the process; None between its end and its restart, or if it will not be restarted.
        started_at: time of the last attempt to start it, on the supervisor's clock.
        restart_seconds: the last pause before a restart, initially `MIN_RESTART_SECONDS`. The next pause is twice as
            long, at most `MAX_RESTART_SECONDS`; it is `MIN_RESTART_SECONDS` if the process ran for more than
            `SETTLED_SECONDS`.
        is_killed: whether the process was killed for its silence; False from its next start on.
        restart_at: time of the planned restart, on the supervisor's clock; None if none is planned.
    """

    spec: ChildSpec
    heartbeat_timer: HeartbeatTimer
    child: ChildProcess | None = None
    started_at: float = 0.0
    restart_seconds: float = MIN_RESTART_SECONDS
    is_killed: bool = False
    restart_at: float | None = None

    def is_alive(self, now: float) -> bool:
        """Return whether the child runs and, if it writes heartbeats, has written one recently.

        Recently means less than half of `max_silent_seconds` ago.
        """
        if self.child is None or not self.spec.has_heartbeats:
            return self.child is not None
        timer = self.heartbeat_timer
        return timer.has_heartbeat and timer.compute_silent_seconds(now) < timer.max_silent_seconds / 2


class Supervisor:
    """Supervisor that starts, restarts and stops child processes.

    Use it in one thread only: on Linux a child ends with the thread that started it.

    Attributes:
        registrar: registers the addresses of local servers; None before the database is ready.
    """

    def __init__(
        self,
        logs: Path,
        lock_handle: int,
        *,
        print_message: Callable[[str], None],
        max_silent_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Build a supervisor without children.

        Args:
            logs: folder of the logs.
            lock_handle: descriptor of a locked file. Every child inherits it and so holds the lock, too.
            print_message: called with sentences for the terminal.
            max_silent_seconds: seconds without a sign of life after which a child is restarted.
            clock: monotonic clock in seconds.
        """
        self._logs = logs
        self._lock_handle = lock_handle
        self._print_message = print_message
        self._max_silent_seconds = max_silent_seconds
        self._clock = clock
        self._supervised: list[SupervisedChild] = []
        self._ticked_at = clock()
        self.registrar: ServiceRegistrar | None = None

    @property
    def names(self) -> set[str]:
        """Names of the supervised children."""
        return {supervised.spec.name for supervised in self._supervised}

    def add(self, spec: ChildSpec) -> ChildProcess:
        """Start a child and supervise it from now on."""
        supervised = SupervisedChild(spec, HeartbeatTimer(self._max_silent_seconds))
        self._supervised.append(supervised)
        return self._start(supervised)

    def tick(self) -> None:
        """Reap ended children, restart those whose pause is over, read ready lines and ping local servers.

        The call does not block. Call it several times a second.
        """
        now = self._clock()
        if now - self._ticked_at > self._max_silent_seconds / 2:  # this process was suspended and saw no signs of life
            for supervised in self._supervised:
                supervised.heartbeat_timer.forgive_silence(now)
        self._ticked_at = now
        for supervised in self._supervised:
            if supervised.child and (exit_code := supervised.child.poll_exit_code()) is not None:
                self._reap(supervised, exit_code, now)
            elif supervised.restart_at is not None and now >= supervised.restart_at:
                self._restart(supervised, now)
        if self.registrar:
            self.registrar.tick()
            responsive_names = self.registrar.list_responsive_names()
            for supervised in self._supervised:
                if supervised.spec.name in responsive_names:
                    supervised.heartbeat_timer.record_heartbeat(now)

    def restart_silent(self, silent_seconds: Mapping[int, float] | None, queried_at: float) -> None:
        """Kill children that have shown no sign of life for too long; `tick` restarts them.

        The silence of a child that writes heartbeats is ignored while the database cannot be queried or a child on
        which it depends is not alive. A local server is not killed before its ready line, because a large model takes
        long to load. A child with neither heartbeats nor a ready line is never killed.

        Args:
            silent_seconds: seconds since the last heartbeat by process number; None if the database cannot be queried.
            queried_at: time before the query, on the supervisor's clock.
        """
        running_by_pid = {
            supervised.child.pid: supervised
            for supervised in self._supervised
            if supervised.child and supervised.child.poll_exit_code() is None
        }
        for pid, seconds in (silent_seconds or {}).items():
            if pid in running_by_pid:
                running_by_pid[pid].heartbeat_timer.record_heartbeat(queried_at - seconds)
        alive_names = {supervised.spec.name for supervised in self._supervised if supervised.is_alive(queried_at)}
        for supervised in running_by_pid.values():
            spec, timer = supervised.spec, supervised.heartbeat_timer
            dependencies = spec.depends_on & self.names
            if spec.has_heartbeats and (silent_seconds is None or dependencies - alive_names):
                timer.forgive_silence(queried_at)
            if spec.has_heartbeats or (spec.has_ready_line and timer.has_heartbeat):
                self._kill_overdue(supervised, queried_at)

    def limit_logs(self) -> None:
        """Empty the logs that have become too large (`ChildProcess.limit_log`)."""
        for supervised in self._supervised:
            if supervised.child:
                supervised.child.limit_log()

    def _kill_overdue(self, supervised: SupervisedChild, now: float) -> None:
        if supervised.child is not None and not supervised.is_killed and supervised.heartbeat_timer.is_overdue(now):
            supervised.is_killed = True
            self._print_message(f"{supervised.spec.name} shows no sign of life and is killed")
            supervised.heartbeat_timer.extend_limits()
            supervised.child.kill()

    def stop(self, names: Set[str], *, must_kill: Callable[[], bool] = lambda: False) -> None:
        """Request the named children to stop, the last started first, and wait until they have ended.

        A child that still runs `stop_seconds` after the request is killed. The children are no longer supervised.

        Args:
            names: names of the children.
            must_kill: called while waiting; if it returns True, children that still run are killed at once.
        """
        stopping = [supervised for supervised in reversed(self._supervised) if supervised.spec.name in names]
        self._supervised = [supervised for supervised in self._supervised if supervised not in stopping]
        children = [supervised.child for supervised in stopping if supervised.child]
        for child in children:
            child.request_stop()
        deadlines = {child.pid: time.monotonic() + child.spec.stop_seconds for child in children}
        while running := [child for child in children if child.poll_exit_code() is None]:
            for child in running:
                if must_kill() or time.monotonic() > deadlines[child.pid]:
                    child.kill()
            time.sleep(0.02)
        for child in children:
            child.close()

    def _start(self, supervised: SupervisedChild) -> ChildProcess:
        supervised.started_at, supervised.restart_at, supervised.is_killed = self._clock(), None, False
        supervised.child = ChildProcess(supervised.spec, self._logs, (self._lock_handle,))
        supervised.heartbeat_timer.start(supervised.started_at)
        if supervised.spec.has_ready_line and self.registrar:
            self.registrar.watch(supervised.child)
        return supervised.child

    def _restart(self, supervised: SupervisedChild, now: float) -> None:
        """Start a child again, or schedule another attempt if that fails, for lack of memory for instance."""
        try:
            self._start(supervised)
        except OSError as error:
            self._schedule_restart(supervised, now, f"cannot be started ({error})")

    def _reap(self, supervised: SupervisedChild, exit_code: int, now: float) -> None:
        """Close a child that has ended, and schedule its restart unless it is a local server that cannot start."""
        assert supervised.child is not None
        child, name = supervised.child, supervised.spec.name
        child.close()
        supervised.child = None
        if supervised.spec.has_ready_line and self.registrar:
            self.registrar.unregister(name)
        if exit_code == START_FAILED_EXIT_CODE and supervised.spec.has_ready_line:
            self._print_message(f"{name} is left out: {child.read_last_log_line()}")
            return
        self._schedule_restart(supervised, now, f"ended ({_describe_exit(exit_code)}); its log is {child.log}")

    def _schedule_restart(self, supervised: SupervisedChild, now: float, event: str) -> None:
        """Set the time of the next start, and print what happened to the child."""
        supervised.restart_seconds = (
            MIN_RESTART_SECONDS
            if now - supervised.started_at > SETTLED_SECONDS
            else min(supervised.restart_seconds * 2, MAX_RESTART_SECONDS)
        )
        supervised.restart_at = now + supervised.restart_seconds
        self._print_message(
            f"{supervised.spec.name} {event}; it is started again in {supervised.restart_seconds:.1f} s"
        )


def _describe_exit(exit_code: int) -> str:
    return f"killed by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
