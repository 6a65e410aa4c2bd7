"""Manifest of a bundle, which lists the hashes of all other members and the data that was left out."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from toolbench.engine.types import JsonObject

BUNDLE_FORMAT = "toolbench-bundle"
BUNDLE_VERSION = 2
READABLE_VERSIONS = (1, BUNDLE_VERSION)  # version 1 has no quantiles with bounds; its evidence has the same form
MANIFEST_NAME = "manifest.json"
INDEX_NAME = "index.html"
RUN_NAME = "evidence/run.json"
CASES_NAME = "evidence/cases.json"
TRIALS_FOLDER = "evidence/trials/"
EVIDENCE_FOLDER = "evidence/"


class ManifestError(ValueError):
    """Manifest that cannot be read; the message gives the reason, such as "its version is 3, …"."""


@dataclass(frozen=True, slots=True)
class Member:
    """Hash and size of the unpacked content of a member.

    Attributes:
        sha256: hash in hexadecimal digits.
        bytes: number of bytes.
    """

    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class LeftOutItem:
    """Data that a bundle does not contain.

    Attributes:
        what: description of the data.
        why: the reason.
    """

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Manifest of a bundle.

    Attributes:
        made_at: when the bundle was written, in ISO 8601.
        source: the run, its origin and the engine version that wrote the bundle.
        members: every member except the manifest, by its name.
        left_out: what the bundle does not contain.
        format: always BUNDLE_FORMAT.
        version: always BUNDLE_VERSION, even if the parsed file has an older version.
        evidence: result of `hash_evidence`. Equal evidence has the same hash in every installation.
    """

    made_at: str
    source: JsonObject
    members: Mapping[str, Member]
    left_out: tuple[LeftOutItem, ...] = ()
    format: str = BUNDLE_FORMAT
    version: int = BUNDLE_VERSION
    evidence: str = ""

    def to_bytes(self) -> bytes:
        """Return the manifest as ASCII JSON."""
        return json.dumps(asdict(self), indent=1).encode("ascii")


def build_trial_name(number: int) -> str:
    """Return the name of the evidence member of a trial. Trials are numbered from 1."""
    return f"{TRIALS_FOLDER}{number:06}.json"


def build_trace_name(number: int) -> str:
    """Return the name of the member with a trial's HTML page. Trials are numbered from 1."""
    return f"traces/{number:06}.html"


def hash_evidence(members: Mapping[str, Member]) -> str:
    """Return one SHA-256 over the names and hashes of the evidence members; other members are ignored."""
    lines = [f"{name} {members[name].sha256}\n" for name in sorted(members) if name.startswith(EVIDENCE_FOLDER)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def build_member(content: bytes) -> Member:
    """Return the hash and the size of a member's content."""
    return Member(hashlib.sha256(content).hexdigest(), len(content))


def parse_manifest(content: bytes) -> Manifest:
    """Parse the content of `manifest.json`.

    Raises:
        ManifestError: the content is not a manifest, has another format, or has a version that cannot be read.
    """
    try:
        document = json.loads(content)
        if document["format"] != BUNDLE_FORMAT:
            raise ManifestError(f"its format is {str(document['format'])[:40]!r}, not {BUNDLE_FORMAT!r}")
        if document["version"] not in READABLE_VERSIONS:
            readable_versions = " and ".join(map(str, READABLE_VERSIONS))
            raise ManifestError(
                f"its version is {str(document['version'])[:20]}, and Toolbench reads {readable_versions}"
            )
        members = {
            str(name): Member(str(member["sha256"]), int(member["bytes"]))
            for name, member in document["members"].items()
        }
        left_out = tuple(LeftOutItem(str(item["what"]), str(item["why"])) for item in document["left_out"])
        source = document["source"] if isinstance(document["source"], dict) else {}
        return Manifest(str(document["made_at"]), source, members, left_out, evidence=str(document["evidence"]))
    except KeyError as error:
        raise ManifestError(f"its {MANIFEST_NAME} has no {error}") from error
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, ManifestError):
            raise
        raise ManifestError(f"its {MANIFEST_NAME} cannot be read ({type(error).__name__})") from error
