"""A child process: what it is, and the life of it."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MAX_LOG_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What a child runs. `environment` is all of its environment. `announces`: its first line on stdout is JSON that
    says where it serves. `beats`: it shows that it lives by a row in the database; `depends_on`: the children without
    which it cannot. `handed`: open files it inherits."""

    name: str
    command: list[str]
    environment: Mapping[str, str]
    folder: Path
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    announces: bool = False
    beats: bool = False
    depends_on: frozenset[str] = frozenset()
    handed: tuple[int, ...] = ()


class ChildProcess:
    """One process of a spec. Its output goes to `<logs>/<name>.log`; a long log is set aside once, as `.log.1`.
    `handed` are open files it inherits beside those of the spec."""

    def __init__(self, spec: ChildSpec, logs: Path, handed: tuple[int, ...] = ()) -> None:
        self.spec = spec
        self.log = logs / f"{spec.name}.log"
        if self.log.exists() and self.log.stat().st_size > _MAX_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                spec.command,
                cwd=spec.folder,
                env=dict(spec.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if spec.announces else output,
                stderr=output,
                pass_fds=(*spec.handed, *handed),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def exit_code(self) -> int | None:
        """None while it runs. Asking also buries it, so that a dead child is never taken for a living one."""
        return self.process.poll()

    def request_stop(self) -> None:
        if self.exit_code() is None:
            self.process.send_signal(self.spec.stop_signal)

    def stop(self) -> None:
        """Asks it to stop, waits as long as its spec allows, and kills it if it does not."""
        self.request_stop()
        try:
            self.process.wait(self.spec.stop_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self.close()

    def kill(self) -> None:
        """Kills it and every process of its group, and waits until it is gone."""
        self._kill_group()
        self.process.wait()

    def close(self) -> None:
        """Lets go of what a dead child leaves: its pipe, and processes it had started."""
        self._kill_group()
        if self.process.stdout:
            self.process.stdout.close()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
