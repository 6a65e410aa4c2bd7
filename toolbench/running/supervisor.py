"""Keeps children alive: one that ends, or that shows no sign of life, is started again after a growing pause."""

import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from toolbench.running.child_process import Child, Spec
from toolbench.running.ready_lines import Register
from toolbench.running.silence import SETTLED_SECONDS, Silence

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
CANNOT_START = 3  # a child's exit code: it said in one sentence what is missing, and trying again would not help


@dataclass(slots=True)
class Kept:
    """A spec, its living child, or the moment at which it is started again."""

    spec: Spec
    silence: Silence
    child: Child | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    replaced: bool = False  # the living child was killed; it may take a while to end
    again: float | None = None

    def is_heard(self, now: float) -> bool:
        """Return whether it runs and, where it beats, has lately shown a sign of life."""
        if self.child is None or not self.spec.beats:
            return self.child is not None
        return self.silence.has_spoken and self.silence.seconds(now) < self.silence.limit / 2


class Supervisor:
    """Not for threads: on Linux a child dies with the thread that started it. Every child inherits the file `handed`,
    and so holds the lock on it. `clock` gives seconds."""

    def __init__(
        self,
        logs: Path,
        handed: int,
        *,
        say: Callable[[str], None],
        silent_limit: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logs = logs
        self._handed = (handed,)
        self._say = say
        self._silent_limit = silent_limit
        self._clock = clock
        self._kept: list[Kept] = []
        self._ticked = clock()
        self.register: Register | None = None

    @property
    def names(self) -> set[str]:
        return {kept.spec.name for kept in self._kept}

    def add(self, spec: Spec) -> Child:
        """Starts a child and keeps it alive from now on."""
        kept = Kept(spec, Silence(self._silent_limit))
        self._kept.append(kept)
        return self._start(kept)

    def tick(self) -> None:
        """Buries the dead, starts again what is due, hears announcements. Cheap; to be called a few times a second."""
        now = self._clock()
        if now - self._ticked > self._silent_limit / 2:  # we stood still, and heard nobody meanwhile
            for kept in self._kept:
                kept.silence.excuse(now)
        self._ticked = now
        for kept in self._kept:
            if kept.child and (code := kept.child.exit_code()) is not None:
                self._bury(kept, code, now)
            elif kept.again is not None and now >= kept.again:
                self._start(kept)
        if self.register:
            self.register.tick()
            alive = self.register.signs_of_life()
            for kept in self._kept:
                if kept.spec.name in alive:
                    kept.silence.hear(now)

    def replace_silent(self, silent: Mapping[int, float] | None, asked_at: float) -> None:
        """Kill children that have shown no sign of life for too long; `tick` starts them again.

        Args:
            silent: seconds since the last sign of life by process number; None when the database could not be asked.
            asked_at: the clock before it was asked.
        """
        living = {kept.child.pid: kept for kept in self._kept if kept.child and kept.child.exit_code() is None}
        for pid, seconds in (silent or {}).items():
            if pid in living:
                living[pid].silence.hear(asked_at - seconds)
        heard = {kept.spec.name for kept in self._kept if kept.is_heard(asked_at)}
        for kept in living.values():
            needed = kept.spec.needs & self.names
            if kept.spec.beats and (silent is None or needed - heard):
                kept.silence.excuse(asked_at)
            if kept.spec.beats or (kept.spec.announces and kept.silence.has_spoken):  # a large model loads for long
                self._replace_overdue(kept, asked_at)

    def _replace_overdue(self, kept: Kept, now: float) -> None:
        if kept.child is not None and not kept.replaced and kept.silence.is_overdue(now):
            kept.replaced = True
            self._say(f"{kept.spec.name} shows no sign of life: it is stopped by force")
            kept.silence.grow()
            kept.child.kill()

    def stop(self, names: Set[str], *, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stops the named children, the last started first. `hurry` is asked while waiting; True
        kills what is left."""
        chosen = [kept for kept in reversed(self._kept) if kept.spec.name in names]
        self._kept = [kept for kept in self._kept if kept not in chosen]
        living = [kept.child for kept in chosen if kept.child]
        for child in living:
            child.ask_to_stop()
        until = {child.pid: time.monotonic() + child.spec.stop_seconds for child in living}
        while waiting := [child for child in living if child.exit_code() is None]:
            for child in waiting:
                if hurry() or time.monotonic() > until[child.pid]:
                    child.kill()
            time.sleep(0.02)
        for child in living:
            child.close()

    def _start(self, kept: Kept) -> Child:
        kept.child = Child(kept.spec, self._logs, self._handed)
        kept.started, kept.again, kept.replaced = self._clock(), None, False
        kept.silence.start(kept.started)
        if kept.spec.announces and self.register:
            self.register.follow(kept.child)
        return kept.child

    def _bury(self, kept: Kept, code: int, now: float) -> None:
        assert kept.child is not None
        kept.child.close()
        log, name = kept.child.log, kept.spec.name
        last_words = log.read_text(errors="replace").strip().rpartition("\n")[2]
        kept.child = None
        if kept.spec.announces and self.register:
            self.register.withdraw(name)
        if code == CANNOT_START and kept.spec.announces:
            self._say(f"{name} is left out: {last_words}")
            return
        kept.pause = FIRST_PAUSE if now - kept.started > SETTLED_SECONDS else min(kept.pause * 2, LONGEST_PAUSE)
        kept.again = now + kept.pause
        self._say(f"{name} ended ({_how(code)}); it is started again in {kept.pause:.1f} s; its log is {log}")


def _how(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
