"""Confirmation on the terminal, which commands ask for before they send paid requests."""

import sys

_YES_WORDS = ("y", "yes")


def is_confirmed(question: str) -> bool:
    """Ask a question on the terminal and return whether the answer is yes.

    Args:
        question: sentence that says what is sent and what it may cost.

    Returns:
        Also False if standard input is no terminal, where nobody can answer, or has ended (Ctrl-D).
    """
    if not sys.stdin.isatty():
        return False
    try:
        return input(f"{question} [y/N] ").strip().lower() in _YES_WORDS
    except EOFError:
        return False
