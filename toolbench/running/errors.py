"""Error and output of `make` commands at the terminal."""

from contextlib import suppress


class RunnerError(Exception):
    """Failure of a `make` command. Its text says what is wrong and what to do."""


def print_line(text: str) -> None:
    """Print a line and flush it. If the terminal is closed, do nothing."""
    with suppress(OSError):
        print(text, flush=True)
