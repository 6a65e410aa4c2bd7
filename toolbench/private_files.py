"""Files for their owner alone (mode 0600), never seen half written: each is written beside its place and then put
there."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Whoever reads it meanwhile finds the old file or the new one, whole."""
    beside = _write_temporary(path, data)
    os.replace(beside, path)


def create_once(path: Path, make: Callable[[], bytes]) -> bytes:
    """What the file holds. Of several processes or threads that come at once one makes it, and all read the same."""
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
