"""Line that a local server prints when it is ready, and the message when it cannot start."""

import json
import sys
from dataclasses import asdict, dataclass

START_FAILED_EXIT_CODE = 3  # standard error then holds one sentence


class ServerStartError(Exception):
    """Failure to start a local server; its text is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class ReadyLine:
    """Address of a local server that is ready.

    Attributes:
        url: address without prefix and without trailing slash.
        key: value for the Authorization header.
    """

    name: str
    url: str
    key: str
    model: str

    def to_json(self) -> str:
        """Return the line as a JSON object."""
        return json.dumps(asdict(self))


def print_ready_line(announcement: ReadyLine) -> None:
    """Write the ready line to standard output and flush it."""
    sys.stdout.write(announcement.to_json() + "\n")
    sys.stdout.flush()


def report_start_error(error: ServerStartError) -> int:
    """Write the error's sentence to standard error and return the exit code for it."""
    sys.stderr.write(f"{error}\n")
    return START_FAILED_EXIT_CODE
