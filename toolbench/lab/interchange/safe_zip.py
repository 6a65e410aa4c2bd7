"""Opening a zip file that a stranger wrote: names, sizes and hashes are checked before anything in it is believed.
Nothing is ever unpacked to disk."""

import hashlib
import json
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

if sys.version_info >= (3, 14):
    from zipfile import BadZipFile, ZipFile, ZipInfo

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError
    from backports.zstd.zipfile import BadZipFile, ZipFile, ZipInfo

from toolbench.lab.interchange.manifest import EVIDENCE, MANIFEST, Manifest, NotABundle, evidence_hash, read_manifest
from toolbench.lab.traces.step_facts import column_text

Archive = ZipFile
MOST_MEMBERS = 400_000
MOST_MEMBER_BYTES = 256 << 20
MOST_BYTES = 8 << 30  # of all members, unpacked
MOST_RATIO = 200  # unpacked to packed, above RATIO_FROM
RATIO_FROM = 16 << 20
_ENCRYPTED = 1
_PIECE = 1 << 20


class ImportRefused(Exception):
    """A file that is not imported; its text says why. Nothing of it is kept."""

    def __init__(self, says: str) -> None:
        super().__init__(column_text(says))  # it may quote the file, and is stored and shown


@dataclass(frozen=True, slots=True)
class Caps:
    """What a file may unpack to."""

    members: int = MOST_MEMBERS
    member_bytes: int = MOST_MEMBER_BYTES
    bytes: int = MOST_BYTES


@contextmanager
def open_zip(file: IO[bytes], caps: Caps) -> Iterator[ZipFile]:
    """The archive, its list of members checked; deflated or, as Inspect AI does, by zstd. Raises ImportRefused, also
    for damage found while it is read."""
    try:
        with ZipFile(file) as archive:
            check_members(archive, caps)
            yield archive
    except UnicodeDecodeError as error:
        raise ImportRefused("A member of the file has a name that is not UTF-8. Nothing was imported.") from error
    except BadZipFile as error:
        damage = str(error) if str(error).startswith("Bad CRC") else "it is cut off, or something else"
        raise ImportRefused(f"The file is no whole zip archive: {damage}. Nothing was imported.") from error
    except (ZstdError, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ImportRefused(f"The file is no readable zip archive: {error}. Nothing was imported.") from error


def unpacked_bytes(file: IO[bytes]) -> int:
    """Return what a zip archive unpacks to; the size of the file if it is no archive that is taken."""
    try:
        with open_zip(file, Caps()) as archive:
            return sum(info.file_size for info in archive.infolist())
    except ImportRefused:
        return file.seek(0, os.SEEK_END)
    finally:
        file.seek(0)


def check_members(archive: ZipFile, caps: Caps) -> None:
    """Raises ImportRefused."""
    every = archive.infolist()
    if len(every) > caps.members:
        raise ImportRefused(f"The file has {len(every):,} members; {caps.members:,} are taken. Nothing was imported.")
    names = [info.filename for info in every]
    if len(set(names)) < len(names):
        raise ImportRefused("Two members of the file have the same name. Nothing was imported.")
    for info in every:
        _check(info, caps)
    whole, stored = sum(info.file_size for info in every), sum(info.compress_size for info in every)
    if whole > caps.bytes or (whole > RATIO_FROM and whole > MOST_RATIO * max(stored, 1)):
        raise ImportRefused(
            f"The file would unpack to {whole:,} bytes from {stored:,}: that is too much. Nothing was imported."
        )


def _check(info: ZipInfo, caps: Caps) -> None:
    path = PurePosixPath(info.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in info.filename or ":" in info.filename:
        raise ImportRefused(f"The member {info.filename[:80]!r} points outside the file. Nothing was imported.")
    if info.flag_bits & _ENCRYPTED:
        raise ImportRefused("The file is encrypted. Nothing was imported.")
    if info.file_size > caps.member_bytes:
        larger = ": use `manage.py import_bundle FILE` on the machine itself"
        raise ImportRefused(
            f"The member {info.filename[:80]!r} has {info.file_size:,} bytes; {caps.member_bytes:,} are taken here. "
            f"Nothing was imported{larger if info.file_size <= MOST_MEMBER_BYTES else ''}."
        )


def checked_manifest(archive: ZipFile) -> Manifest:
    """The manifest, after every member was read once and found as it says. Raises ImportRefused."""
    try:
        manifest = read_manifest(archive.read(MANIFEST))
    except KeyError as error:
        raise ImportRefused(f"There is no {MANIFEST} in the file, so it is no bundle. Nothing was imported.") from error
    except NotABundle as error:
        raise ImportRefused(f"The file is no bundle that can be read: {error}. Nothing was imported.") from error
    names = {info.filename for info in archive.infolist()} - {MANIFEST}
    if names != manifest.members.keys():
        odd = sorted(names ^ manifest.members.keys())[0]
        where = "is not listed in the manifest" if odd in names else "is listed and missing"
        raise ImportRefused(f"The member {odd[:80]!r} {where}. Nothing was imported.")
    for name, member in manifest.members.items():
        if _hash(archive, name) != member.sha256:
            raise ImportRefused(f"The member {name[:80]!r} was changed after it was written. Nothing was imported.")
    if manifest.evidence != evidence_hash(manifest.members):
        raise ImportRefused("The hash of the evidence is not that of its members. Nothing was imported.")
    return manifest


def evidence_names(manifest: Manifest) -> list[str]:
    return sorted(name for name in manifest.members if name.startswith(EVIDENCE))


def read_object(archive: ZipFile, name: str) -> dict[str, Any]:
    """Raises ImportRefused for anything but a JSON object."""
    try:
        found = json.loads(archive.read(name))
    except KeyError as error:
        raise ImportRefused(f"The member {name} is missing. Nothing was imported.") from error
    except (ValueError, RecursionError) as error:
        raise ImportRefused(f"The member {name} is no JSON: {error}. Nothing was imported.") from error
    if not isinstance(found, dict):
        raise ImportRefused(f"The member {name} is no JSON object. Nothing was imported.")
    return found


def _hash(archive: ZipFile, name: str) -> str:
    digest = hashlib.sha256()
    with archive.open(name) as member:
        while piece := member.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
