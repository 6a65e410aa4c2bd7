"""Folders of an installation, and the lock and the state of a running `make up` in them."""

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolbench.installation import build_command
from toolbench.private_files import replace_file
from toolbench.running.errors import RunnerError

MIN_FREE_BYTES = 200_000_000
_SOCKET_FOLDER_PREFIX = "toolbench-"


@dataclass(frozen=True, slots=True)
class Paths:
    """Folders of one installation.

    Attributes:
        var: folder of all data.
    """

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
        """Create the folders if they do not exist; a new `var` can be accessed only by its owner.

        Raises:
            RunnerError: a folder cannot be created, or the disk has less than `MIN_FREE_BYTES` left.
        """
        try:
            self.var.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(exist_ok=True)
        except OSError as error:
            raise RunnerError(
                f"{self.var} cannot be written ({error.strerror}): set TOOLBENCH_VAR to a folder of your own."
            ) from error
        if shutil.disk_usage(self.var).free < MIN_FREE_BYTES:
            raise RunnerError(
                f"The disk that holds {self.var} has less than 200 MB left: "
                f"make room and run `{build_command('up')}` again."
            )


@dataclass(frozen=True, slots=True)
class State:
    """State that a running `make up` writes to a file for other commands.

    Attributes:
        base: address of the site.
        sockets: folder of the servers' sockets.
        environment: environment variables with which other commands use the same servers.
    """

    base: str
    sockets: str
    environment: dict[str, str]

    def write(self, path: Path) -> None:
        """Write the state to a file as JSON."""
        document = {"base": self.base, "sockets": self.sockets, "environment": self.environment}
        replace_file(path, json.dumps(document, indent=1).encode())


def read_state(path: Path) -> State | None:
    """Return the state in a file, or None if the file is missing or unreadable."""
    try:
        return State(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def make_socket_folder(previous_state: State | None) -> Path:
    """Create a private folder for sockets, and remove that of an earlier start that was killed.

    The folder is in /tmp because the path of a socket is limited to about 100 bytes.

    Args:
        previous_state: state that the killed start left in its file; None if there is none.
    """
    if previous_state:
        remove_sockets(Path(previous_state.sockets))
    return Path(tempfile.mkdtemp(prefix=_SOCKET_FOLDER_PREFIX, dir="/tmp"))


def remove_sockets(folder: Path) -> None:
    """Remove a folder of sockets, unless its name shows that `make_socket_folder` did not create it."""
    if folder.name.startswith(_SOCKET_FOLDER_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


class Lock:
    """Lock on a file, which the kernel releases when no process has the open file any more.

    Attributes:
        handle: descriptor of the open file. A child process that inherits it holds the lock, too.
    """

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)

    def acquire(self, *, seconds: float = 0.0, on_wait: Callable[[], None] = lambda: None) -> bool:
        """Try for `seconds` to acquire the lock, and return whether that succeeded.

        Args:
            seconds: 0 for a single attempt.
            on_wait: called once before the first wait; not called for a single attempt.
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
                on_wait()
                is_waiting_reported = True
            time.sleep(0.05)

    def release(self) -> None:
        """Close the file, which releases the lock unless another process has inherited the descriptor."""
        os.close(self.handle)
