"""Bundles as bytes, and what can be done to them on the way."""

import io
import zipfile
from collections.abc import Mapping

from toolbench.lab.bundles.manifest import Manifest
from toolbench.lab.bundles.writing import write_bundle
from toolbench.lab.models import Run


def bundle_of(run: Run, *, private: bool = False) -> tuple[bytes, Manifest]:
    file = io.BytesIO()
    manifest = write_bundle(run.pk, file, private=private)
    return file.getvalue(), manifest


def members_of(bundle: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def rewritten(bundle: bytes, changes: Mapping[str, bytes]) -> bytes:
    """The same archive with some members changed or added, the manifest as it was."""
    return zipped(members_of(bundle) | dict(changes))
