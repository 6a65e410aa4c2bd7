"""Confirmation on the terminal: answers, no terminal and the end of the input."""

from io import StringIO

import pytest

from toolbench.lab.management.confirmation import is_confirmed


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "confirmed"), [("y\n", True), (" YES \n", True), ("n\n", False), ("\n", False)])
def test_is_confirmed_reads_the_answer(monkeypatch: pytest.MonkeyPatch, typed: str, confirmed: bool) -> None:
    monkeypatch.setattr("sys.stdin", _Terminal(typed))
    assert is_confirmed("Send 300 requests?") is confirmed


def test_is_confirmed_at_end_of_input_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", _Terminal(""))
    assert not is_confirmed("Send 300 requests?")


def test_is_confirmed_without_terminal_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    assert not is_confirmed("Send 300 requests?")
