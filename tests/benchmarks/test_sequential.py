"""Tests of the benchmark of sequential stopping: its exit code."""

import pytest

from benchmarks import sequential
from benchmarks.sequential import SimulationResult, main

QUICK = ("--runs", "20", "--most", "15")


def test_main_with_errors_as_stated_returns_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(QUICK) == 0
    assert "ABOVE IT" not in capsys.readouterr().out


@pytest.mark.parametrize("function", ["simulate_cell", "simulate_cells"])
def test_main_with_error_above_stated_returns_1(
    function: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = SimulationResult(runs=20, wrong=0.9, left_out=0.0, decided=1.0, trials=10.0)
    monkeypatch.setattr(sequential, function, lambda *args, **named: wrong)
    assert main(QUICK) == 1
    assert "ABOVE IT" in capsys.readouterr().out
