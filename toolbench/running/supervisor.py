"""Supervision of child processes: one that ends or shows no sign of life is restarted after a growing pause."""

import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.ready_lines import ServiceRegistrar
from toolbench.running.silence import SETTLED_SECONDS, HeartbeatTimer

MIN_RESTART_SECONDS = 0.5
MAX_RESTART_SECONDS = 30.0
START_FAILED_EXIT_CODE = (
    3  # a child's exit code: it said in one sentence what is missing, and trying again would not help
)


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
    """Starts child processes and restarts them. Every child inherits the file `handed` and so holds the lock on it.

    It is not for threads: on Linux a child ends with the thread that started it. `clock` returns seconds.
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
        self._say = print_message
        self._silent_limit = silent_limit
        self._clock = clock
        self._supervised: list[SupervisedChild] = []
        self._ticked = clock()
        self.registrar: ServiceRegistrar | None = None

    @property
    def names(self) -> set[str]:
        """Names of the supervised children."""
        return {kept.spec.name for kept in self._supervised}

    def add(self, spec: ChildSpec) -> ChildProcess:
        """Start a child and supervise it from now on."""
        kept = SupervisedChild(spec, HeartbeatTimer(self._silent_limit))
        self._supervised.append(kept)
        return self._start(kept)

    def tick(self) -> None:
        """Close ended children, restart those that are due, and read ready lines. Call it a few times a second."""
        now = self._clock()
        if now - self._ticked > self._silent_limit / 2:  # we stood still, and heard nobody meanwhile
            for kept in self._supervised:
                kept.heartbeat_timer.forgive_silence(now)
        self._ticked = now
        for kept in self._supervised:
            if kept.child and (code := kept.child.exit_code()) is not None:
                self._reap(kept, code, now)
            elif kept.restart_at is not None and now >= kept.restart_at:
                self._start(kept)
        if self.registrar:
            self.registrar.tick()
            alive = self.registrar.list_alive()
            for kept in self._supervised:
                if kept.spec.name in alive:
                    kept.heartbeat_timer.record_heartbeat(now)

    def restart_silent(self, silent: Mapping[int, float] | None, asked_at: float) -> None:
        """Kill children that have shown no sign of life for too long; `tick` starts them again.

        Args:
            silent: seconds since the last sign of life by process number; None when the database could not be asked.
            asked_at: the clock before it was asked.
        """
        living = {kept.child.pid: kept for kept in self._supervised if kept.child and kept.child.exit_code() is None}
        for pid, seconds in (silent or {}).items():
            if pid in living:
                living[pid].heartbeat_timer.record_heartbeat(asked_at - seconds)
        recent = {kept.spec.name for kept in self._supervised if kept.has_recent_heartbeat(asked_at)}
        for kept in living.values():
            needed = kept.spec.depends_on & self.names
            if kept.spec.beats and (silent is None or needed - recent):
                kept.heartbeat_timer.forgive_silence(asked_at)
            if kept.spec.beats or (
                kept.spec.announces and kept.heartbeat_timer.has_heartbeat
            ):  # a large model loads for long
                self._kill_overdue(kept, asked_at)

    def _kill_overdue(self, kept: SupervisedChild, now: float) -> None:
        if kept.child is not None and not kept.is_killed and kept.heartbeat_timer.is_overdue(now):
            kept.is_killed = True
            self._say(f"{kept.spec.name} shows no sign of life: it is stopped by force")
            kept.heartbeat_timer.extend_limits()
            kept.child.kill()

    def stop(self, names: Set[str], *, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop the named children, the last started first.

        Args:
            names: names of the children.
            hurry: called while waiting; if it returns True, the rest is killed.
        """
        chosen = [kept for kept in reversed(self._supervised) if kept.spec.name in names]
        self._supervised = [kept for kept in self._supervised if kept not in chosen]
        living = [kept.child for kept in chosen if kept.child]
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

    def _start(self, kept: SupervisedChild) -> ChildProcess:
        kept.child = ChildProcess(kept.spec, self._logs, self._handed)
        kept.started_at, kept.restart_at, kept.is_killed = self._clock(), None, False
        kept.heartbeat_timer.start(kept.started_at)
        if kept.spec.announces and self.registrar:
            self.registrar.watch(kept.child)
        return kept.child

    def _reap(self, kept: SupervisedChild, code: int, now: float) -> None:
        assert kept.child is not None
        kept.child.close()
        log, name = kept.child.log, kept.spec.name
        last_words = log.read_text(errors="replace").strip().rpartition("\n")[2]
        kept.child = None
        if kept.spec.announces and self.registrar:
            self.registrar.unregister(name)
        if code == START_FAILED_EXIT_CODE and kept.spec.announces:
            self._say(f"{name} is left out: {last_words}")
            return
        kept.restart_seconds = (
            MIN_RESTART_SECONDS
            if now - kept.started_at > SETTLED_SECONDS
            else min(kept.restart_seconds * 2, MAX_RESTART_SECONDS)
        )
        kept.restart_at = now + kept.restart_seconds
        self._say(
            f"{name} ended ({_describe_exit(code)}); "
            f"it is started again in {kept.restart_seconds:.1f} s; its log is {log}"
        )


def _describe_exit(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
