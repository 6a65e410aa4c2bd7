"""The one line by which a local server tells its supervisor that it is ready, and the sentence when it cannot be."""

import json
import sys
from dataclasses import asdict, dataclass

START_FAILED_EXIT_CODE = 3  # exit code; standard error then holds one sentence


class ServerStartError(Exception):
    """A local server that cannot be started; its text is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class ReadyLine:
    """Where a server listens. `url` has no prefix and no trailing slash; `key` goes into the Authorization header."""

    name: str
    url: str
    key: str
    model: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def print_ready_line(announcement: ReadyLine) -> None:
    """Writes the ready line to standard output, at once."""
    sys.stdout.write(announcement.to_json() + "\n")
    sys.stdout.flush()


def report_start_error(error: ServerStartError) -> int:
    """Writes the sentence to standard error and returns the exit code that goes with it."""
    sys.stderr.write(f"{error}\n")
    return START_FAILED_EXIT_CODE
