"""Undoing compression ourselves, chunk by chunk and within a limit.

We ask for none (`Accept-Encoding: identity`), so that times and bytes of chunks are the model's own; some servers
compress all the same. gzip and deflate are read, everything else is an error."""

import zlib

import httpx

_WINDOW_AUTO = zlib.MAX_WBITS | 32  # gzip or zlib, whichever the header says


class Decompressor:
    """Reads one body of the given content coding."""

    def __init__(self, coding: str) -> None:
        """Raises httpx.DecodingError for a coding that is neither gzip nor deflate."""
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise httpx.DecodingError(f"The body is coded as {coding!r}, which was not asked for.")
        self._deflate = coding == "deflate"
        self._inflating = zlib.decompressobj(_WINDOW_AUTO)
        self._begun = False

    def decompress_chunk(self, chunk: bytes, limit: int) -> tuple[bytes, bool]:
        """At most `limit` bytes, and whether there would have been more. Raises httpx.DecodingError."""
        try:
            piece = self._decompress(chunk, limit + 1)
        except zlib.error as error:
            raise httpx.DecodingError(f"The compressed body cannot be read: {error}") from error
        return piece[:limit], len(piece) > limit

    def _decompress(self, chunk: bytes, limit: int) -> bytes:
        begun, self._begun = self._begun, True
        try:
            return self._inflating.decompress(chunk, limit)
        except zlib.error:
            if begun or not self._deflate:
                raise
        self._inflating = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without its wrapper, as some servers send it
        return self._inflating.decompress(chunk, limit)
