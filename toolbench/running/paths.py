"""Folders of an installation: data and logs in var/, sockets in a short private folder."""

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
    """Return the folder from TOOLBENCH_VAR, else `var` in the project's folder."""
    return Path(os.environ.get("TOOLBENCH_VAR", ROOT / "var")).absolute()


@dataclass(frozen=True, slots=True)
class Paths:
    """Folders of one installation."""

    var: Path

    @property
    def logs(self) -> Path:
        """Folder of the logs."""
        return self.var / "log"

    @property
    def state(self) -> Path:
        """File with the state of the running `make up`."""
        return self.var / "running.json"

    def create(self) -> None:
        """Create the folders, readable only by their owner.

        Raises:
            RunnerError: The disk has less than 200 MB left.
        """
        self.var.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.logs.mkdir(exist_ok=True)
        if self.free_bytes() < MIN_FREE_BYTES:
            raise RunnerError(
                f"The disk that holds {self.var} has less than 200 MB left: make room and run `make up` again."
            )

    def free_bytes(self) -> int:
        """Return the free bytes of the disk that holds `var`."""
        return shutil.disk_usage(self.var).free


@dataclass(frozen=True, slots=True)
class State:
    """State that a running `make up` publishes to other commands.

    Attributes:
        environment: The variables that other commands need to use the same servers.
    """

    base: str
    sockets: str
    environment: dict[str, str]

    def write(self, path: Path) -> None:
        """Write the state to a file as JSON."""
        document = {"base": self.base, "sockets": self.sockets, "environment": self.environment}
        replace_file(path, json.dumps(document, indent=1).encode())


def read_state(path: Path) -> State | None:
    """Return the state that the last start wrote, or None if it is missing or unreadable."""
    try:
        return State(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def make_socket_folder(previous_state: State | None) -> Path:
    """Create a new private folder for sockets and remove the one that a killed start left.

    Its name is short because a socket's path is limited to about 100 bytes.
    """
    if previous_state:
        remove_sockets(previous_state)
    return Path(tempfile.mkdtemp(prefix=_SOCKETS_PREFIX, dir="/tmp"))


def remove_sockets(state: State) -> None:
    """Remove the folder of sockets if its name starts with `toolbench-`."""
    if Path(state.sockets).name.startswith(_SOCKETS_PREFIX):
        shutil.rmtree(state.sockets, ignore_errors=True)


class Lock:
    """Lock on a file; the kernel releases it when the last process that holds it ends."""

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)  # a child that inherits it is a holder too

    def acquire(self, *, seconds: float = 0.0, waiting: Callable[[], None] = lambda: None) -> bool:
        """Try to acquire the lock for `seconds` and return whether that succeeded.

        `waiting` is called once if the lock is not free at once.
        """
        deadline = time.monotonic() + seconds
        is_waiting_reported = False
        while True:
            try:
                fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
            if not is_waiting_reported:
                waiting()
                is_waiting_reported = True
            time.sleep(0.05)

    def release(self) -> None:
        """Close the file, which releases the lock unless another process inherited it."""
        os.close(self.handle)
