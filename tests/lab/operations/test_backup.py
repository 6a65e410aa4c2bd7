"""Backups with a member that cannot be read."""

import hashlib
import io
import zipfile
from collections.abc import Callable

import pytest

from toolbench.lab.operations.backup import DUMP_NAME, FORMAT, BackupError, BackupManifest, check_dump


def encrypt(member: zipfile.ZipInfo) -> None:
    member.flag_bits |= 1


def claim_deflate(member: zipfile.ZipInfo) -> None:
    member.compress_type = zipfile.ZIP_DEFLATED


def claim_unknown_compression(member: zipfile.ZipInfo) -> None:
    member.compress_type = 99


def claim_other_digest(member: zipfile.ZipInfo) -> None:
    member.CRC ^= 1


@pytest.mark.parametrize("damage", [encrypt, claim_deflate, claim_unknown_compression, claim_other_digest])
def test_check_dump_refuses_a_damaged_member(damage: Callable[[zipfile.ZipInfo], None]) -> None:
    file, dump = io.BytesIO(), b"\xff" * 40
    manifest = BackupManifest(FORMAT, "", "", (), 0, 0, len(dump), hashlib.sha256(dump).hexdigest(), ())
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(DUMP_NAME, dump)
        check_dump(archive, manifest)
        damage(archive.getinfo(DUMP_NAME))
    with zipfile.ZipFile(file) as archive, pytest.raises(BackupError, match="cannot be read to the end"):
        check_dump(archive, manifest)
