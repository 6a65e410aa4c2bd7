"""File of chaos rounds: reading, appending and its summary."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.chaos.invariants import VIOLATION_KINDS
from benchmarks.chaos.round_file import RoundFile, SeedMismatchError, describe, list_rounds_left, summarise


def build_round(number: int, **fields: Any) -> dict[str, Any]:
    run = {"run_id": 1, "sent": 12, "poisoned": False, "executions_lost": 2, "outcomes": {"pass": 4, "fail": 1}}
    whole = {
        "number": number,
        "seed": 1,
        "hit": ["kill worker-1 at +0.4 s"],
        "poison": "",
        "runs": [run],
        "cells": 3,
        "violations": [],
        "seconds": 4.0 + number,
    }
    return whole | fields


def build_violation(kind: str) -> dict[str, Any]:
    return {"kind": kind, "run_id": 1, "text": "trial 4 ended 2 times: pass, pass"}


def test_round_file_reads_what_was_appended(tmp_path: Path) -> None:
    file = RoundFile(tmp_path / "var" / "rounds.jsonl", seed=1)
    file.append(build_round(1))
    file.append(build_round(2))

    assert file.read() == [build_round(1), build_round(2)]


def test_round_file_missing_is_empty(tmp_path: Path) -> None:
    assert RoundFile(tmp_path / "none.jsonl", seed=1).read() == []


def test_round_file_drops_incomplete_line(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    file = RoundFile(path, seed=1)
    file.append(build_round(1))
    with path.open("a") as cut:
        cut.write('{"number": 2, "se')

    assert file.read() == [build_round(1)]
    file.append(build_round(2))
    assert file.read() == [build_round(1), build_round(2)]


def test_round_file_refuses_other_seed(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    RoundFile(path, seed=1).append(build_round(1))

    with pytest.raises(SeedMismatchError, match=r"seed 1: name another file with --out"):
        RoundFile(path, seed=2).read()


def test_list_rounds_left_omits_played_rounds() -> None:
    assert list_rounds_left([build_round(1), build_round(3)], 5) == [2, 4, 5]
    assert list_rounds_left([build_round(1), build_round(2)], 2) == []


def test_summarise_counts_trials_faults_and_violations() -> None:
    wrong = build_round(
        2, hit=["freeze web at +1.0 s for 2.0 s", "fill wal at +0.2 s"], violations=[build_violation("doubled")] * 3
    )

    lines = summarise([build_round(1), wrong]).splitlines()

    assert "| rounds | 2 |" in lines
    assert "| trials | 10 |" in lines
    assert "| requests counted at the provider | 24 |" in lines
    assert "| disk full | 1 |" in lines
    assert "| rounds with a trial that ended twice | 1 |" in lines
    assert "| rounds with a lost trial | 0 |" in lines
    assert "| seconds per round, median and maximum | 5.5, 6.0 |" in lines
    assert any(line.startswith("| processes killed | 1 (") and "worker-1 1" in line for line in lines)
    assert any(line.startswith("| processes frozen | 1 (") and "web 1" in line for line in lines)


@pytest.mark.parametrize("kind", VIOLATION_KINDS)
def test_summarise_counts_rounds_with_each_kind_of_violation(kind: str) -> None:
    without, with_violation = (
        summarise([build_round(1, violations=found)]) for found in ([], [build_violation(kind)] * 2)
    )
    rows = set(with_violation.splitlines()) - set(without.splitlines())
    assert [row.split("|")[2].strip() for row in rows] == ["1"]


def test_summarise_without_rounds_renders_table() -> None:
    assert "| rounds | 0 |" in summarise([])


def test_describe_names_each_violation() -> None:
    description = describe(build_round(2, poison="usage NaN", violations=[build_violation("doubled")]))

    assert description.splitlines() == [
        "round 2: 5 trials, 6.0 s; kill worker-1 at +0.4 s; poison: usage NaN",
        "  doubled, run 1: trial 4 ended 2 times: pass, pass",
    ]
