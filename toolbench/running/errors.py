"""Error and output of the commands of the Makefile and of `toolbench` at the terminal."""

from contextlib import suppress


class RunnerError(Exception):
    """Failure of a command of the Makefile or of `toolbench`. Its text says what is wrong and what to do."""


def print_line(text: str) -> None:
    """Print a line and flush it. If the terminal is closed, do nothing."""
    with suppress(OSError):
        print(text, flush=True)
