"""Reading of untrusted zip files: names, sizes and, in bundles, hashes are checked before the content is used.

No member is unpacked to disk.
"""

import hashlib
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

if sys.version_info >= (3, 14):
    from zipfile import ZIP_DEFLATED, ZIP_STORED, ZIP_ZSTANDARD, BadZipFile, ZipFile, ZipInfo

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError
    from backports.zstd.zipfile import ZIP_DEFLATED, ZIP_STORED, ZIP_ZSTANDARD, BadZipFile, ZipFile, ZipInfo

from toolbench.installation import build_command
from toolbench.lab.interchange.json_shapes import parse_imported_json
from toolbench.lab.interchange.manifest import (
    EVIDENCE_FOLDER,
    MANIFEST_NAME,
    Manifest,
    ManifestError,
    hash_evidence,
    parse_manifest,
)
from toolbench.lab.traces.step_facts import to_column_text

Archive = ZipFile  # exported for annotations in other modules: its library depends on the version of Python
MAX_MEMBERS = 400_000
MAX_MEMBER_BYTES = 256 << 20
MAX_UNPACKED_BYTES = 8 << 30  # of all members
MAX_RATIO = 200  # unpacked bytes of all members per packed byte, if they exceed MIN_RATIO_CHECK_BYTES
MIN_RATIO_CHECK_BYTES = 16 << 20
_ENCRYPTED_FLAG = 1
_COMPRESSIONS = (ZIP_STORED, ZIP_DEFLATED, ZIP_ZSTANDARD)
_CHUNK_BYTES = 1 << 20


class RunImportError(Exception):
    """File that is not imported; the message gives the reason. Nothing of the file is stored."""

    def __init__(self, message: str) -> None:
        super().__init__(to_column_text(message))  # the message may quote characters that no column can store


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Maximum number and sizes of the members of a zip file.

    Attributes:
        members: number of members.
        member_bytes: unpacked bytes of one member.
        bytes: unpacked bytes of all members.
    """

    members: int = MAX_MEMBERS
    member_bytes: int = MAX_MEMBER_BYTES
    bytes: int = MAX_UNPACKED_BYTES


@contextmanager
def open_zip(file: IO[bytes], limits: UnpackLimits) -> Iterator[ZipFile]:
    """Open an archive and check its members. They may be compressed by deflate, or by zstd as in logs of Inspect AI.

    Raises:
        RunImportError: the file is not a zip archive, `check_members` refuses it, or a member that the `with` block
            reads cannot be unpacked.
    """
    try:
        with ZipFile(file) as archive:
            check_members(archive, limits)
            yield archive
    except UnicodeDecodeError as error:
        raise RunImportError("A member of the file has a name that is not UTF-8. Nothing was imported.") from error
    except BadZipFile as error:
        damage = str(error) if str(error).startswith("Bad CRC") else "it is truncated or has another format"
        raise RunImportError(f"The file is not a complete zip archive: {damage}. Nothing was imported.") from error
    except (ZstdError, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise RunImportError(f"The zip archive cannot be read: {error}. Nothing was imported.") from error


def count_unpacked_bytes(file: IO[bytes]) -> int:
    """Return the number of unpacked bytes of an archive, or the size of a file that `open_zip` refuses.

    The file's position is at its start afterwards.
    """
    try:
        with open_zip(file, UnpackLimits()) as archive:
            return sum(info.file_size for info in archive.infolist())
    except RunImportError:
        return file.seek(0, os.SEEK_END)
    finally:
        file.seek(0)


def check_members(archive: ZipFile, limits: UnpackLimits) -> None:
    """Check the number of members, and the name, compression, position and declared size of each.

    Raises:
        RunImportError: a member is refused as in `_check_member`, two members have the same name, or the number of
            members, their size or the ratio of their unpacked to their packed bytes exceeds its limit.
    """
    members = archive.infolist()
    if len(members) > limits.members:
        raise RunImportError(
            f"The file has {len(members):,} members; the limit is {limits.members:,}. Nothing was imported."
        )
    names = [info.filename for info in members]
    if len(set(names)) < len(names):
        raise RunImportError("Two members of the file have the same name. Nothing was imported.")
    for info in members:
        _check_member(info, limits)
    unpacked_bytes, packed_bytes = sum(info.file_size for info in members), sum(info.compress_size for info in members)
    if unpacked_bytes > limits.bytes or (
        unpacked_bytes > MIN_RATIO_CHECK_BYTES and unpacked_bytes > MAX_RATIO * max(packed_bytes, 1)
    ):
        raise RunImportError(
            f"The file would unpack from {packed_bytes:,} to {unpacked_bytes:,} bytes, which exceeds the limit of "
            f"{limits.bytes:,} bytes or of {MAX_RATIO} times the packed size. Nothing was imported."
        )


def _check_member(info: ZipInfo, limits: UnpackLimits) -> None:
    """Check the name, compression, position and declared size of a member.

    Raises:
        RunImportError: the name could lead out of a folder, or the member is encrypted, is compressed by a method that
            is not in _COMPRESSIONS, is too large, or has a negative position because the start of the file is missing.
    """
    path = PurePosixPath(info.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in info.filename or ":" in info.filename:
        raise RunImportError(f"The member {info.filename[:80]!r} points outside the file. Nothing was imported.")
    if info.flag_bits & _ENCRYPTED_FLAG:
        raise RunImportError("The file is encrypted. Nothing was imported.")
    if info.compress_type not in _COMPRESSIONS:
        raise RunImportError(
            f"The member {info.filename[:80]!r} is compressed by another method than deflate or zstd. "
            "Nothing was imported."
        )
    if info.header_offset < 0:
        raise RunImportError("The file is not a complete zip archive: its beginning is missing. Nothing was imported.")
    if info.file_size > limits.member_bytes:
        advice = f" Use `{build_command('import_bundle', 'FILE')}` on the server."
        raise RunImportError(
            f"The member {info.filename[:80]!r} has {info.file_size:,} bytes; the limit is {limits.member_bytes:,}. "
            f"Nothing was imported.{advice if info.file_size <= MAX_MEMBER_BYTES else ''}"
        )


def read_checked_manifest(archive: ZipFile) -> Manifest:
    """Return the manifest of a bundle after comparing it with the names and hashes of all members.

    Raises:
        RunImportError: the manifest cannot be read or does not agree with the members.
    """
    try:
        manifest = parse_manifest(archive.read(MANIFEST_NAME))
    except KeyError as error:
        raise RunImportError(
            f"The file has no {MANIFEST_NAME}, so it is not a bundle. Nothing was imported."
        ) from error
    except ManifestError as error:
        raise RunImportError(f"The bundle cannot be read: {error}. Nothing was imported.") from error
    names = {info.filename for info in archive.infolist()} - {MANIFEST_NAME}
    if names != manifest.members.keys():
        unmatched_name = sorted(names ^ manifest.members.keys())[0]
        problem = (
            "is not listed in the manifest" if unmatched_name in names else "is listed in the manifest but missing"
        )
        raise RunImportError(f"The member {unmatched_name[:80]!r} {problem}. Nothing was imported.")
    for name, member in manifest.members.items():
        if _hash_member(archive, name) != member.sha256:
            raise RunImportError(f"The member {name[:80]!r} was changed after it was written. Nothing was imported.")
    if manifest.evidence != hash_evidence(manifest.members):
        raise RunImportError(
            "The manifest's hash of the evidence differs from that of the members. Nothing was imported."
        )
    return manifest


def list_evidence_names(manifest: Manifest) -> list[str]:
    """Return the names of the evidence members, sorted."""
    return sorted(name for name in manifest.members if name.startswith(EVIDENCE_FOLDER))


def read_json_member(archive: ZipFile, name: str) -> dict[str, Any]:
    """Return the JSON object in a member.

    Raises:
        RunImportError: the member is missing, does not contain a JSON object, or is nested too deeply.
    """
    try:
        document = parse_imported_json(archive.read(name))
    except KeyError as error:
        raise RunImportError(f"The member {name} is missing. Nothing was imported.") from error
    except ValueError as error:
        raise RunImportError(f"The member {name} cannot be read as JSON: {error}. Nothing was imported.") from error
    if not isinstance(document, dict):
        raise RunImportError(f"The member {name} is not a JSON object. Nothing was imported.")
    return document


def _hash_member(archive: ZipFile, name: str) -> str:
    digest = hashlib.sha256()
    with archive.open(name) as member:
        while chunk := member.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
