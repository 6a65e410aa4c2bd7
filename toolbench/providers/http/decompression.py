"""Decompression of response bodies, chunk by chunk and within a limit.

Requests ask for no compression (`Accept-Encoding: identity`), so that times and sizes of chunks are those of the model.
Some servers compress nevertheless. gzip and deflate are read; any other coding is an error.
"""

import zlib

import httpx

_WINDOW_AUTO = zlib.MAX_WBITS | 32  # detects gzip or zlib by the header


class Decompressor:
    """Decompressor for one body of a given content coding."""

    def __init__(self, coding: str) -> None:
        """Prepare to read a body.

        Raises:
            httpx.DecodingError: the coding is neither gzip nor deflate.
        """
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise httpx.DecodingError(f"The body is coded as {coding!r}, which was not asked for.")
        self._deflate = coding == "deflate"
        self._inflating = zlib.decompressobj(_WINDOW_AUTO)
        self._begun = False

    def decompress_chunk(self, chunk: bytes, limit: int) -> tuple[bytes, bool]:
        """Decompress a chunk.

        Returns:
            At most `limit` bytes, and whether the chunk held more.

        Raises:
            httpx.DecodingError: the bytes are not valid in this coding.
        """
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
        self._inflating = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers send deflate without the zlib header
        return self._inflating.decompress(chunk, limit)
