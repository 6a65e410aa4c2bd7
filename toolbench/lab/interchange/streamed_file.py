"""Streaming of large files to a response while they are written."""

import io
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import IO, Any, TypeVar, cast

_T = TypeVar("_T")
PartWriter = Generator[None, None, _T]  # writes a file part by part and yields after each part
_CHUNK_CHARS = 1 << 16


class _Buffer(io.RawIOBase):
    """Write-only buffer that `fetch` empties. It cannot seek, so `zipfile` writes an archive in one pass."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def fetch(self) -> bytes:
        content = b"".join(self._parts)
        self._parts.clear()
        return content


def iter_file_chunks(write: Callable[[IO[bytes]], PartWriter[object]]) -> Iterator[bytes]:
    """Yield the bytes of a file while it is written: a chunk after each part, and one after the end.

    A chunk may be empty.

    Args:
        write: writes the file to a stream that cannot seek, and yields after each part.
    """
    buffer = _Buffer()
    for _ in write(cast("IO[bytes]", buffer)):
        yield buffer.fetch()
    yield buffer.fetch()


def join_text_parts(parts: Iterable[str]) -> Iterator[bytes]:
    """Yield a text as UTF-8, joining its parts to chunks of _CHUNK_CHARS characters or more; only the last is shorter.

    The last chunk may be empty.
    """
    chunk_parts: list[str] = []
    chunk_chars = 0
    for part in parts:
        chunk_parts.append(part)
        chunk_chars += len(part)
        if chunk_chars >= _CHUNK_CHARS:
            yield "".join(chunk_parts).encode()
            chunk_parts, chunk_chars = [], 0
    yield "".join(chunk_parts).encode()


def run_writer(writer: PartWriter[_T]) -> _T:
    """Run a part writer to its end, without streaming, and return its result."""
    while True:
        try:
            next(writer)
        except StopIteration as end:
            result: _T = end.value
            return result
