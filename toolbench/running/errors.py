"""Messages for the user at the terminal."""

from contextlib import suppress


class RunnerError(Exception):
    """Error whose text is one sentence for the user: the problem and what to do."""


def print_line(text: str) -> None:
    """Print a line at once; a closed terminal is ignored."""
    with suppress(OSError):
        print(text, flush=True)
