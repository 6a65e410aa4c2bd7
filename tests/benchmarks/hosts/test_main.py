"""Tests of the command of the hosts benchmark: scenarios that this machine cannot play."""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.hosts import __main__ as hosts
from benchmarks.hosts.scenarios import SCENARIOS, WRONG_CLOCKS


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the scenarios that the command plays on a machine without libfaketime."""
    names: list[str] = []

    def play(chosen: Sequence[str], out: Path | None) -> bool:
        names.extend(chosen)
        return True

    monkeypatch.setattr(hosts, "has_libfaketime", lambda: False)
    monkeypatch.setattr(hosts, "enter_namespace", lambda *arguments: True)
    monkeypatch.setattr(signal, "signal", lambda *arguments: None)
    monkeypatch.setattr(hosts, "_play", play)
    return names


@pytest.mark.parametrize("arguments", [[WRONG_CLOCKS], ["share", WRONG_CLOCKS]])
def test_named_wrong_clocks_without_libfaketime_fails(
    arguments: list[str], played: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["hosts", *arguments])
    assert hosts.main() == 2
    assert "libfaketime is missing" in capsys.readouterr().err
    assert played == []


def test_all_scenarios_without_libfaketime_leave_out_wrong_clocks(
    played: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["hosts"])
    assert hosts.main() == 0
    assert played == [name for name in SCENARIOS if name != WRONG_CLOCKS]
    assert WRONG_CLOCKS in capsys.readouterr().err
