"""Bundles as bytes, to read and to change in tests."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict

from toolbench.lab.interchange.bundle.write import write_bundle
from toolbench.lab.interchange.manifest import Manifest, build_member, hash_evidence
from toolbench.lab.models import Run


def write_bundle_bytes(run: Run, *, private: bool = False) -> tuple[bytes, Manifest]:
    file = io.BytesIO()
    manifest = write_bundle(run.pk, file, private=private)
    return file.getvalue(), manifest


def read_members(bundle: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zip_members(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def reseal_members(members: Mapping[str, bytes]) -> bytes:
    """Return a bundle of the members with a matching manifest."""
    manifest = json.loads(members["manifest.json"])
    content = {name: raw for name, raw in members.items() if name != "manifest.json"}
    hashes = {name: build_member(raw) for name, raw in content.items()}
    manifest["members"] = {name: asdict(member) for name, member in hashes.items()}
    manifest["evidence"] = hash_evidence(hashes)
    return zip_members(content | {"manifest.json": json.dumps(manifest).encode()})
