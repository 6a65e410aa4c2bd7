"""A child process: what it is, and the life of it."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_KEPT_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class Spec:
    """What a child runs. `environment` is all of its environment. `announces`: its first line on stdout is JSON that
    says where it serves. `beats`: it shows that it lives by a row in the database, of this kind."""

    name: str
    command: list[str]
    environment: Mapping[str, str]
    folder: Path
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    announces: bool = False
    beats: str = ""
    handed: tuple[int, ...] = field(default=())


class Child:
    """One process of a spec. Its output goes to `<logs>/<name>.log`; a long log is set aside once, as `.log.1`."""

    def __init__(self, spec: Spec, logs: Path) -> None:
        self.spec = spec
        self.log = logs / f"{spec.name}.log"
        if self.log.exists() and self.log.stat().st_size > _KEPT_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                spec.command,
                cwd=spec.folder,
                env=dict(spec.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if spec.announces else output,
                stderr=output,
                pass_fds=spec.handed,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def exit_code(self) -> int | None:
        """None while it runs. Asking also buries it, so that a dead child is never taken for a living one."""
        return self.process.poll()

    def stop(self, *, seconds: float | None = None) -> None:
        """Asks it to stop, waits, and kills it and what it started if it does not."""
        if self.exit_code() is None:
            self.process.send_signal(self.spec.stop_signal)
            try:
                self.process.wait(self.spec.stop_seconds if seconds is None else seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        if self.process.stdout:
            self.process.stdout.close()

    def kill(self) -> None:
        """Kills it and every process of its session group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
