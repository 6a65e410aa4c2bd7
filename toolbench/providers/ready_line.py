"""The one line by which a local server tells its supervisor that it is ready, and the sentence when it cannot be."""

import json
import sys
from dataclasses import asdict, dataclass

CANNOT_START = 3  # exit code; standard error then holds one sentence


class CannotStart(Exception):
    """A local server that cannot be started; its text is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """Where a server listens. `url` has no prefix and no trailing slash; `key` goes into the Authorization header."""

    name: str
    url: str
    key: str
    model: str

    def line(self) -> str:
        return json.dumps(asdict(self))


def announce(announcement: Announcement) -> None:
    """Writes the ready line to standard output, at once."""
    sys.stdout.write(announcement.line() + "\n")
    sys.stdout.flush()


def apologise(error: CannotStart) -> int:
    """Writes the sentence to standard error and returns the exit code that goes with it."""
    sys.stderr.write(f"{error}\n")
    return CANNOT_START
