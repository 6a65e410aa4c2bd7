"""Reader of untrusted zip files."""

import io
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
