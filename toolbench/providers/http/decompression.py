"""Decompression of response bodies, chunk by chunk and within a limit.

Requests ask for no compression (`Accept-Encoding: identity`), because compression can delay the chunks of a stream.
Some servers compress nevertheless. gzip and deflate are decompressed; any other content coding is an error.
"""

import zlib

import httpx

_GZIP_OR_ZLIB_BITS = zlib.MAX_WBITS | 32  # zlib detects the format by its header


class Decompressor:
    """Decompressor for one body of a given content coding."""

    def __init__(self, coding: str) -> None:
        """Prepare to decompress a body.

        Args:
            coding: value of the Content-Encoding header, in lower case.

        Raises:
            httpx.DecodingError: the coding is neither gzip nor deflate.
        """
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise httpx.DecodingError(f"The body has the content coding {coding!r}, which Toolbench did not request.")
        self._is_deflate = coding == "deflate"
        self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB_BITS)
        self._has_begun = False

    def decompress_chunk(self, chunk: bytes, max_bytes: int) -> tuple[bytes, bool]:
        """Decompress the next chunk of the body.

        Returns:
            At most `max_bytes` bytes, and whether the chunk holds more than these.

        Raises:
            httpx.DecodingError: the bytes are not valid in this coding.
        """
        try:
            data = self._decompress(chunk, max_bytes + 1)
        except zlib.error as error:
            raise httpx.DecodingError(f"The compressed body cannot be read: {error}") from error
        return data[:max_bytes], len(data) > max_bytes

    def _decompress(self, chunk: bytes, max_bytes: int) -> bytes:
        had_begun, self._has_begun = self._has_begun, True
        try:
            return self._zlib.decompress(chunk, max_bytes)
        except zlib.error:
            if had_begun or not self._is_deflate:
                raise
        self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers send deflate without the zlib header
        return self._zlib.decompress(chunk, max_bytes)
