"""Large files on their way out."""

import tempfile
from collections.abc import Callable, Iterator
from typing import IO

_PIECE = 1 << 16


def in_pieces(write: Callable[[IO[bytes]], object]) -> Iterator[bytes]:
    """What `write` writes, made whole on disk first."""
    with tempfile.TemporaryFile() as file:
        write(file)
        file.seek(0)
        while piece := file.read(_PIECE):
            yield piece
