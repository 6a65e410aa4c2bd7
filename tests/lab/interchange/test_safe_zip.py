"""Reader of untrusted zip files."""

import io
import struct
import zipfile

import pytest

from toolbench.lab.interchange.safe_zip import RunImportError, UnpackLimits, open_zip


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_open_zip_refuses_other_compression_methods(method: int) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("manifest.json", b"{}")
    with (
        pytest.raises(RunImportError, match="another method than deflate or zstd"),
        open_zip(file, UnpackLimits()),
    ):
        pass


def test_open_zip_refuses_members_that_begin_before_the_file() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", b"{}")
    content = bytearray(file.getvalue())
    struct.pack_into("<I", content, content.rindex(b"PK\5\6") + 16, 5000)  # position of the list of members
    with (
        pytest.raises(RunImportError, match="its beginning is missing"),
        open_zip(io.BytesIO(content), UnpackLimits()),
    ):
        pass
