"""Files that only their owner can access (mode 0600) and that other processes never see half written.

Each file is written under a temporary name in the same folder and then moved to its path.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Replace the content of a file at once.

    A process that reads it meanwhile gets all of the old content or all of the new.
    """
    beside = _write_temporary(path, data)
    os.replace(beside, path)


def create_once(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return the content of a file; create it with `make` if it does not exist.

    If several processes or threads call this at the same time, one of them creates the file and all return the same
    content.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = _write_temporary(path, make())
        with suppress(FileExistsError):
            os.link(beside, path)
        os.unlink(beside)
    return path.read_bytes()


def _write_temporary(path: Path, data: bytes) -> str:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return name
