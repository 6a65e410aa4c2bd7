"""Supervision of child processes: ended or silent ones are restarted after a growing pause."""

import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.ready_lines import ServiceRegistrar
from toolbench.running.silence import SETTLED_SECONDS, HeartbeatTimer

MIN_RESTART_SECONDS = 0.5
MAX_RESTART_SECONDS = 30.0
START_FAILED_EXIT_CODE = 3  # a child's exit code: it printed what is missing; a restart would not help


@dataclass(slots=True)
class SupervisedChild:
    """A specification with its running child, or the time of its restart."""

    spec: ChildSpec
    heartbeat_timer: HeartbeatTimer
    child: ChildProcess | None = None
    started_at: float = 0.0
    restart_seconds: float = MIN_RESTART_SECONDS
    is_killed: bool = False  # the living child was killed; it may take a while to end
    restart_at: float | None = None

    def has_recent_heartbeat(self, now: float) -> bool:
        """Return whether it runs and, if it writes heartbeats, has written one recently."""
        if self.child is None or not self.spec.beats:
            return self.child is not None
        return self.heartbeat_timer.has_heartbeat and self.heartbeat_timer.seconds(now) < self.heartbeat_timer.limit / 2


class Supervisor:
    """Supervisor that starts and restarts child processes.

    Every child inherits the file `handed` and so holds the lock on it. It is not for threads: on Linux a child ends
    with the thread that started it. `clock` returns seconds.
    """

    def __init__(
        self,
        logs: Path,
        handed: int,
        *,
        print_message: Callable[[str], None],
        silent_limit: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logs = logs
        self._handed = (handed,)
        self._print_message = print_message
        self._silent_limit = silent_limit
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
        supervised = SupervisedChild(spec, HeartbeatTimer(self._silent_limit))
        self._supervised.append(supervised)
        return self._start(supervised)

    def tick(self) -> None:
        """Reap ended children, restart those that are due, and read ready lines.

        Does not block; call it a few times a second.
        """
        now = self._clock()
        if now - self._ticked_at > self._silent_limit / 2:  # this process was suspended and read no signs of life
            for supervised in self._supervised:
                supervised.heartbeat_timer.forgive_silence(now)
        self._ticked_at = now
        for supervised in self._supervised:
            if supervised.child and (code := supervised.child.exit_code()) is not None:
                self._reap(supervised, code, now)
            elif supervised.restart_at is not None and now >= supervised.restart_at:
                self._start(supervised)
        if self.registrar:
            self.registrar.tick()
            alive = self.registrar.list_alive()
            for supervised in self._supervised:
                if supervised.spec.name in alive:
                    supervised.heartbeat_timer.record_heartbeat(now)

    def restart_silent(self, silent: Mapping[int, float] | None, asked_at: float) -> None:
        """Kill children that have shown no sign of life for too long; `tick` starts them again.

        Args:
            silent: seconds since the last sign of life by process number; None when the database could not be asked.
            asked_at: the clock before it was asked.
        """
        living = {
            supervised.child.pid: supervised
            for supervised in self._supervised
            if supervised.child and supervised.child.exit_code() is None
        }
        for pid, seconds in (silent or {}).items():
            if pid in living:
                living[pid].heartbeat_timer.record_heartbeat(asked_at - seconds)
        recent = {supervised.spec.name for supervised in self._supervised if supervised.has_recent_heartbeat(asked_at)}
        for supervised in living.values():
            needed = supervised.spec.depends_on & self.names
            if supervised.spec.beats and (silent is None or needed - recent):
                supervised.heartbeat_timer.forgive_silence(asked_at)
            if supervised.spec.beats or (
                supervised.spec.announces and supervised.heartbeat_timer.has_heartbeat
            ):  # a large model loads for long
                self._kill_overdue(supervised, asked_at)

    def _kill_overdue(self, supervised: SupervisedChild, now: float) -> None:
        if supervised.child is not None and not supervised.is_killed and supervised.heartbeat_timer.is_overdue(now):
            supervised.is_killed = True
            self._print_message(f"{supervised.spec.name} shows no sign of life: it is stopped by force")
            supervised.heartbeat_timer.extend_limits()
            supervised.child.kill()

    def stop(self, names: Set[str], *, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop the named children, the last started first.

        Args:
            names: names of the children.
            hurry: called while waiting; if it returns True, the rest is killed.
        """
        chosen = [supervised for supervised in reversed(self._supervised) if supervised.spec.name in names]
        self._supervised = [supervised for supervised in self._supervised if supervised not in chosen]
        living = [supervised.child for supervised in chosen if supervised.child]
        for child in living:
            child.request_stop()
        until = {child.pid: time.monotonic() + child.spec.stop_seconds for child in living}
        while waiting := [child for child in living if child.exit_code() is None]:
            for child in waiting:
                if hurry() or time.monotonic() > until[child.pid]:
                    child.kill()
            time.sleep(0.02)
        for child in living:
            child.close()

    def _start(self, supervised: SupervisedChild) -> ChildProcess:
        supervised.child = ChildProcess(supervised.spec, self._logs, self._handed)
        supervised.started_at, supervised.restart_at, supervised.is_killed = self._clock(), None, False
        supervised.heartbeat_timer.start(supervised.started_at)
        if supervised.spec.announces and self.registrar:
            self.registrar.watch(supervised.child)
        return supervised.child

    def _reap(self, supervised: SupervisedChild, code: int, now: float) -> None:
        assert supervised.child is not None
        supervised.child.close()
        log, name = supervised.child.log, supervised.spec.name
        last_words = log.read_text(errors="replace").strip().rpartition("\n")[2]
        supervised.child = None
        if supervised.spec.announces and self.registrar:
            self.registrar.unregister(name)
        if code == START_FAILED_EXIT_CODE and supervised.spec.announces:
            self._print_message(f"{name} is left out: {last_words}")
            return
        supervised.restart_seconds = (
            MIN_RESTART_SECONDS
            if now - supervised.started_at > SETTLED_SECONDS
            else min(supervised.restart_seconds * 2, MAX_RESTART_SECONDS)
        )
        supervised.restart_at = now + supervised.restart_seconds
        self._print_message(
            f"{name} ended ({_describe_exit(code)}); "
            f"it is started again in {supervised.restart_seconds:.1f} s; its log is {log}"
        )


def _describe_exit(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
