"""Listens to the children that say where they serve, and passes it on."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping

from toolbench.running.children import Child
from toolbench.running.places import ROOT

_PATIENCE_SECONDS = 60


class Announcement:
    """What one child says on standard output: its first line is the announcement, the rest goes to its log."""

    def __init__(self, child: Child) -> None:
        assert child.process.stdout is not None
        self._log = child.log
        self._pipe = child.process.stdout
        self._heard = b""
        os.set_blocking(self._pipe.fileno(), False)

    @property
    def line(self) -> str:
        """The ready line, empty before it was said."""
        line, end, _ = self._heard.partition(b"\n")
        return line.decode(errors="replace") if end else ""

    def listen(self) -> None:
        """Takes what was said so far, without waiting."""
        while said := self._read():
            if self.line:
                with self._log.open("ab") as log:
                    log.write(said)
            else:
                self._heard += said

    def _read(self) -> bytes:
        if self._pipe.closed:
            return b""
        try:
            return os.read(self._pipe.fileno(), 65536)
        except BlockingIOError:
            return b""


class Register:
    """Tells the lab where each child serves, and tries again later when the lab cannot be told."""

    def __init__(self, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._environment = environment
        self._say = say
        self._open: dict[str, Announcement] = {}
        self._told: set[str] = set()

    def follow(self, child: Child) -> None:
        """Starts listening to a child, anew when it was started anew."""
        self._open[child.spec.name] = Announcement(child)
        self._told.discard(child.spec.name)

    def tick(self) -> None:
        for name, announcement in self._open.items():
            announcement.listen()
            if announcement.line and name not in self._told and self._tell(name, announcement.line):
                self._told.add(name)
                self._say(f"{name} is ready at {_url(announcement.line)}")

    def _tell(self, name: str, line: str) -> bool:
        command = [sys.executable, "manage.py", "register_service", name]
        told = subprocess.run(
            command,
            input=line.encode(),
            env=dict(self._environment),
            cwd=ROOT,
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        return told.returncode == 0


def _url(line: str) -> str:
    return str(json.loads(line).get("url", ""))
