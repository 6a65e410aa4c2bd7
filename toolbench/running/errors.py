"""What is said to the person at the terminal."""

from contextlib import suppress


class RunnerError(Exception):
    """One sentence for the person at the terminal: what is wrong and what to do."""


def print_line(text: str) -> None:
    """Prints a line at once. A terminal that is gone is no reason to end."""
    with suppress(OSError):
        print(text, flush=True)
