"""Writing of new files by commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def open_new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file for the block, and delete it if the block fails, so that the command can be repeated.

    Raises:
        FileExistsError: the file exists.
    """
    file = path.open("xb")
    try:
        with file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise
