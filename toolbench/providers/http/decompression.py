"""Decompression of response bodies, chunk by chunk and within a limit.

Requests ask for no compression (`Accept-Encoding: identity`), because compression can delay the chunks of a stream.
Some servers compress nevertheless. gzip and deflate are decompressed; any other content coding is an error. A gzip body
may have several members, which are joined. Bytes that follow a body and begin no further member are ignored.
"""

import zlib

import httpx

_GZIP_OR_ZLIB_BITS = zlib.MAX_WBITS | 32  # zlib detects the format by its header
_GZIP_START = b"\x1f\x8b"
_PIECE_BYTES = 4096  # small, because zlib copies the rest of its input at the end of each member


class Decompressor:
    """Decompressor for one body of a given content coding."""

    def __init__(self, coding: str) -> None:
        """Prepare to decompress a body.

        Args:
            coding: value of the Content-Encoding header, in lower case; `x-gzip` means gzip.

        Raises:
            httpx.DecodingError: the coding is neither gzip nor deflate.
        """
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise httpx.DecodingError(f"The body has the content coding {coding!r}, which Toolbench did not request.")
        self._is_deflate = coding == "deflate"
        self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB_BITS)
        self._has_begun = False
        self._undecided = b""  # a single byte at the start of the body or after a member: the format shows in two
        self._has_ended = False

    def decompress_chunk(self, chunk: bytes, max_bytes: int) -> tuple[bytes, bool]:
        """Decompress the next chunk of the body.

        Returns:
            At most `max_bytes` decompressed bytes, and whether the chunk yields more.

        Raises:
            httpx.DecodingError: the bytes are not valid in this coding.
        """
        try:
            data = self._decompress(chunk, max_bytes + 1)
        except zlib.error as error:
            raise httpx.DecodingError(f"The compressed body cannot be read: {error}") from error
        return data[:max_bytes], len(data) > max_bytes

    def _decompress(self, chunk: bytes, max_bytes: int) -> bytes:
        """Return at most `max_bytes` decompressed bytes of the next chunk."""
        chunk, self._undecided = self._undecided + chunk, b""
        data, position = bytearray(), 0
        while position < len(chunk) and len(data) < max_bytes and not self._has_ended:
            piece = chunk[position : position + _PIECE_BYTES]
            if len(piece) < len(_GZIP_START) and (self._zlib.eof or not self._has_begun):
                self._undecided = piece
                break
            if self._zlib.eof:
                self._has_ended = self._is_deflate or not piece.startswith(_GZIP_START)
                self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB_BITS)
                continue
            data += self._decompress_piece(piece, max_bytes - len(data))
            position += len(piece) - len(self._zlib.unused_data)
        return bytes(data)

    def _decompress_piece(self, piece: bytes, max_bytes: int) -> bytes:
        had_begun, self._has_begun = self._has_begun, True
        try:
            return self._zlib.decompress(piece, max_bytes)
        except zlib.error:
            if had_begun or not self._is_deflate:
                raise
        self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers send deflate without the zlib header
        return self._zlib.decompress(piece, max_bytes)
