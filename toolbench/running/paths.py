"""Where everything lies while it runs: data and logs in var/, sockets in a short private folder."""

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolbench.private_files import replace_file
from toolbench.running.errors import RunnerError

ROOT = Path(__file__).resolve().parents[2]
MIN_FREE_BYTES = 200_000_000
_SOCKETS_PREFIX = "toolbench-"


def get_var_folder() -> Path:
    return Path(os.environ.get("TOOLBENCH_VAR", ROOT / "var")).absolute()


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders of one installation."""

    var: Path

    @property
    def logs(self) -> Path:
        return self.var / "log"

    @property
    def state(self) -> Path:
        return self.var / "running.json"

    def create(self) -> None:
        """Makes the folders, private to their owner; refuses a disk that is full."""
        self.var.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.logs.mkdir(exist_ok=True)
        if self.free_bytes() < MIN_FREE_BYTES:
            raise RunnerError(
                f"The disk that holds {self.var} has less than 200 MB left: make room and run `make up` again."
            )

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.var).free


@dataclass(frozen=True, slots=True)
class State:
    """What a running `make up` tells other commands. `environment` is what they need to join in."""

    base: str
    sockets: str
    environment: dict[str, str]

    def write(self, path: Path) -> None:
        said = {"base": self.base, "sockets": self.sockets, "environment": self.environment}
        replace_file(path, json.dumps(said, indent=1).encode())


def read_state(path: Path) -> State | None:
    """What the last start wrote; None if there was none, or none that can be read."""
    try:
        return State(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def make_socket_folder(left_behind: State | None) -> Path:
    """A new private folder with a short name, since a socket's path may have about 100 bytes. The one that a killed
    start left behind is removed."""
    if left_behind:
        remove_sockets(left_behind)
    return Path(tempfile.mkdtemp(prefix=_SOCKETS_PREFIX, dir="/tmp"))


def remove_sockets(state: State) -> None:
    """Removes the folder of sockets; a folder that is not one of ours stays."""
    if Path(state.sockets).name.startswith(_SOCKETS_PREFIX):
        shutil.rmtree(state.sockets, ignore_errors=True)


class Lock:
    """A lock on a file that the kernel lets go when the last process holding it ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)  # a child that inherits it is a holder too

    def acquire(self, *, seconds: float = 0.0, waiting: Callable[[], None] = lambda: None) -> bool:
        """Tries for so long; calls `waiting` once if it has to wait."""
        until = time.monotonic() + seconds
        told = False
        while True:
            try:
                fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() >= until:
                    return False
            if not told:
                waiting()
                told = True
            time.sleep(0.05)

    def release(self) -> None:
        os.close(self.handle)
