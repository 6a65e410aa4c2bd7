"""Files that only their owner can access (mode 0600), written so that no process reads a half-written file.

Each file is first written to the disk under a temporary name in the same folder.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Create a file or replace its content in one step.

    A process that reads the file at that time gets either the whole old content or the whole new content. The mode
    becomes 0600, whatever it was.

    Args:
        path: path of the file; its folder must exist.
        data: the new content.

    Raises:
        FileNotFoundError: the folder does not exist.
    """
    with _write_temporary_file(path, data) as temporary_path:
        os.replace(temporary_path, path)


def create_once(path: Path, build_content: Callable[[], bytes]) -> bytes:
    """Return the content of a file, which is created first if it does not exist.

    If several processes or threads call this at the same time, one of them creates the file and all return the same
    content.

    Args:
        path: path of the file; its folder is created if necessary.
        build_content: called if the file does not exist; its result is discarded if another caller creates the file
            first.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with _write_temporary_file(path, build_content()) as temporary_path, suppress(FileExistsError):
            os.link(temporary_path, path)
    return path.read_bytes()


@contextmanager
def _write_temporary_file(path: Path, data: bytes) -> Iterator[str]:
    """Write the data to a new file in the folder of `path` and yield its path; afterwards, delete the file.

    The caller may move the file.
    """
    descriptor, temporary_path = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # otherwise the file may be empty after a power failure
        yield temporary_path
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary_path)
