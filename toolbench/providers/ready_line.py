"""Port and ready line of a local server or of the gateway, and the report of a server that cannot start."""

import argparse
import json
import sys
from dataclasses import asdict, dataclass

START_FAILED_EXIT_CODE = 3
MAX_PORT = 65535


class ServerStartError(Exception):
    """Failure to start a local server or the gateway.

    Its text is one sentence for users: the cause and, if known, what to do.
    """


@dataclass(frozen=True, slots=True)
class ReadyLine:
    """JSON line that a local server or the gateway prints when it is ready.

    Attributes:
        name: name of the server.
        url: address without API prefix and without trailing slash.
        key: API key of the server; "" for the gateway.
        model: id of a model that the server has; "" for the gateway.
    """

    name: str
    url: str
    key: str
    model: str

    def to_json(self) -> str:
        """Return the line as a JSON object."""
        return json.dumps(asdict(self))


def parse_port(text: str) -> int:
    """Parse the value of an option `--port`; use it as `type` of `add_argument`.

    Raises:
        ArgumentTypeError: the text is no whole number from 0, which selects a free port, to MAX_PORT.
    """
    if not text.isdecimal() or len(text) > len(str(MAX_PORT)) or int(text) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"a port is a whole number from 0 to {MAX_PORT}, not {text[:20]!r}")
    return int(text)


def print_ready_line(ready_line: ReadyLine) -> None:
    """Write the ready line to standard output and flush it."""
    sys.stdout.write(ready_line.to_json() + "\n")
    sys.stdout.flush()


def report_start_error(error: ServerStartError) -> int:
    """Write the error's sentence to standard error and return the exit code of a failed start."""
    sys.stderr.write(f"{error}\n")
    return START_FAILED_EXIT_CODE
