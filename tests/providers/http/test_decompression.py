"""Tests of the decompression of response bodies, chunk by chunk."""

import gzip
import zlib

import pytest

from toolbench.providers.http.decompression import Decompressor

MEMBERS = gzip.compress(b'{"a"', mtime=0) + gzip.compress(b": 1}", mtime=0)


@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", MEMBERS + b"\x1f?"), ("deflate", zlib.compress(b'{"a": 1}', wbits=-zlib.MAX_WBITS))],
)
def test_decompressor_accepts_chunks_of_one_byte(coding: str, body: bytes) -> None:
    decompressor = Decompressor(coding)
    chunks = [decompressor.decompress_chunk(bytes([byte]), 100) for byte in body]
    assert b"".join(data for data, _ in chunks) == b'{"a": 1}'
    assert not any(exceeds_max for _, exceeds_max in chunks)


def test_decompressor_limits_all_members_of_a_chunk_together() -> None:
    assert Decompressor("gzip").decompress_chunk(MEMBERS, 8) == (b'{"a": 1}', False)
    assert Decompressor("gzip").decompress_chunk(MEMBERS, 7) == (b'{"a": 1', True)
