"""What a bundle says of itself: every member with its hash, and what was left out."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from toolbench.engine.messages import JsonObject

FORMAT = "toolbench-bundle"
VERSION = 2
READABLE = (1, VERSION)  # version 1 had no quantiles with bounds; its evidence is the same
MANIFEST = "manifest.json"
INDEX = "index.html"
RUN = "evidence/run.json"
CASES = "evidence/cases.json"
TRIALS = "evidence/trials/"
EVIDENCE = "evidence/"


class NotABundle(ValueError):
    """A manifest that cannot be read; its text says why."""


@dataclass(frozen=True, slots=True)
class Member:
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`evidence` is one hash over the names and hashes of all evidence members: equal for equal evidence, wherever it
    was written. `source` says which run, where it came from and what wrote the file."""

    made_at: str
    source: JsonObject
    members: Mapping[str, Member]
    left_out: tuple[LeftOut, ...] = ()
    format: str = FORMAT
    version: int = VERSION
    evidence: str = field(default="")

    def text(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode("ascii")


def trial_member(number: int) -> str:
    return f"{TRIALS}{number:06}.json"


def trace_member(number: int) -> str:
    return f"traces/{number:06}.html"


def evidence_hash(members: Mapping[str, Member]) -> str:
    lines = [f"{name} {members[name].sha256}\n" for name in sorted(members) if name.startswith(EVIDENCE)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def member_of(content: bytes) -> Member:
    return Member(hashlib.sha256(content).hexdigest(), len(content))


def read_manifest(content: bytes) -> Manifest:
    """Raises NotABundle."""
    try:
        given = json.loads(content)
        if given["format"] != FORMAT:
            raise NotABundle(f"its format is {str(given['format'])[:40]!r}, not {FORMAT!r}")
        if given["version"] not in READABLE:
            known = " and ".join(map(str, READABLE))
            raise NotABundle(f"its version is {str(given['version'])[:20]}, and this Toolbench reads {known}")
        members = {str(name): Member(str(m["sha256"]), int(m["bytes"])) for name, m in given["members"].items()}
        left_out = tuple(LeftOut(str(one["what"]), str(one["why"])) for one in given["left_out"])
        source = given["source"] if isinstance(given["source"], dict) else {}
        return Manifest(str(given["made_at"]), source, members, left_out, evidence=str(given["evidence"]))
    except KeyError as error:
        raise NotABundle(f"its {MANIFEST} does not say {error}") from error
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, NotABundle):
            raise
        raise NotABundle(f"its {MANIFEST} cannot be read ({type(error).__name__})") from error
